// Pictures in a row, one of them chosen: a click or the arrow keys choose another.

import { element } from "./dom.js";

function build(root, data) {
  root.textContent = "";
  root.setAttribute("role", "radiogroup");
  root.setAttribute("aria-label", data.label);
  return data.pictures.map(({ url, name, below, wrong }, i) => {
    const button = element("button");
    button.type = "button";
    button.setAttribute("role", "radio");
    button.setAttribute("aria-label", name);
    button.title = name;
    button.dataset.place = i;
    const image = element("img");
    image.src = url;
    image.alt = "";
    button.append(image);
    if (below) button.append(element("span", wrong ? "bad" : "", below));
    root.append(button);
    return button;
  });
}

function mark(state, chosen) {
  state.chosen = chosen;
  state.buttons.forEach((button, i) => {
    button.setAttribute("aria-checked", String(i === chosen));
    button.tabIndex = i === (chosen ?? 0) ? 0 : -1;
  });
}

function pick(state, place) {
  mark(state, place);
  state.send("pick", place);
}

function listen(state) {
  const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
  state.root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) pick(state, Number(button.dataset.place));
  });
  state.root.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const button = event.target.closest("button");
    if (!step || !button) return;
    event.preventDefault();
    const place = Number(button.dataset.place) + step;
    if (place < 0 || place >= state.buttons.length) return;
    state.buttons[place].focus();
    pick(state, place);
  });
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
