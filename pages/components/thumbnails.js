// Pictures in a row, one of them chosen: a click or the arrow keys choose another.

import { dress, element } from "./dom.js";
import { roving, tabStop } from "./keys.js";

function build(root, data) {
  dress(root, { role: "radiogroup", "aria-label": data.label });
  const buttons = data.pictures.map(({ url, name, below, wrong }, i) => {
    const image = element("img", "", { src: url, alt: "" });
    const said = { role: "radio", "aria-label": name, title: name, "data-place": String(i) };
    return element("button", "", said, image, below && element("span", wrong ? "bad" : "", below));
  });
  root.replaceChildren(...buttons);
  return buttons;
}

function mark(state, chosen) {
  state.chosen = chosen;
  state.buttons.forEach((button, i) => {
    button.setAttribute("aria-checked", String(i === chosen));
  });
  tabStop(state.buttons, state.buttons[chosen ?? 0]);
}

function pick(state, place) {
  mark(state, place);
  state.send("pick", place);
}

function listen(state) {
  state.root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) pick(state, Number(button.dataset.place));
  });
  roving(state.root, () => state.buttons, { arrived: (to) => pick(state, to) });
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".thumbnails");
  const state = root.thumbnails ?? { root };
  state.send = setTriggerValue;
  const shown = JSON.stringify([data.pictures, data.label]);
  if (state.shown !== shown) { state.buttons = build(root, data); state.shown = shown; }
  if (!root.thumbnails) { root.thumbnails = state; listen(state); }
  mark(state, data.chosen);
}
