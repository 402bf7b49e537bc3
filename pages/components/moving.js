// Words that move with the film: a small tree of elements for each step, made by the server.

import { element, fill, markKorean } from "./dom.js";
import { followFrames } from "./events.js";

// [tag, class, ...children], a child being text or a tree again; class "bar" takes a share first. A tag
// may say a language: "rt:en".
export function grown([tag, className, ...children]) {
  const [name, language] = tag.split(":");
  const made = element(name, className);
  children.forEach((child) => {
    if (typeof child === "number") made.style.setProperty("--share", child);
    else made.append(typeof child === "string" ? child : grown(child));
    if (typeof child === "string") markKorean(made, child);
  });
  if (language) made.lang = language;
  return made;
}

// The step to show: the film's while it is of the same thing, else the server's.
export function stepOf(data, frame) {
  const isSame = frame && frame.animation === data.animation && String(frame.step) in data.trees;
  return isSame ? frame.step : data.step;
}

function draw(state, frame) {
  const step = stepOf(state.data, frame);
  const tree = JSON.stringify(state.data.trees[step]);
  if (tree === state.drawn) return;
  state.drawn = tree;
  state.root.replaceChildren(grown(JSON.parse(tree)));
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".moving");
  const state = (root.moving ??= { root });
  state.data = data;
  fill(root);
  return followFrames((frame) => draw(state, frame));
}
