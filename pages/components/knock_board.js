// The parts of a model as buttons: pressed is off.

import { element, fill, named } from "./dom.js";
import { roving } from "./roving.js";

// What is said of a part: its name, and what it is worth where that was measured.
export const said = (cell) => [cell.name, cell.worth].filter(Boolean).join("; ");

const cellsOf = (rows) => rows.flatMap(({ groups, whole }) => [
  ...groups.flatMap((group) => group.cells), ...(whole ? [whole] : []),
]);

function dress(button, cell) {
  button.textContent = cell.text;
  button.title = said(cell);
  named(button, said(cell));
  button.setAttribute("aria-pressed", String(cell.is_off));
  button.classList.toggle("head", cell.is_head);
  button.classList.toggle("hot", cell.heat !== null);
  button.classList.toggle("strong", cell.heat !== null && cell.heat > 0.55);
  button.style.setProperty("--heat", cell.heat ?? 0);
}

function button(state, cell) {
  const made = element("button");
  made.type = "button";
  made.dataset.code = cell.code;
  made.addEventListener("click", () => state.send("pick", cell.code));
  state.buttons.set(cell.code, made);
  return made;
}

function boxed(state, group) {
  const box = element("div", "group");
  const cells = element("div", "cells");
  cells.append(...group.cells.map((cell) => button(state, cell)));
  box.append(element("span", "what", group.name), cells);
  return box;
}

function build(state) {
  const { root, data } = state;
  root.textContent = "";
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", data.label);
  state.buttons = new Map();
  data.rows.forEach((row) => {
    const line = element("div", "layer");
    const name = element("div", "name");
    name.append(element("span", "", row.name));
    if (row.whole) name.append(button(state, row.whole));
    const groups = element("div", "groups");
    groups.append(...row.groups.map((group) => boxed(state, group)));
    line.append(name, groups);
    root.append(line);
  });
  roving([...root.querySelectorAll("button")]);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".board");
  const state = root.board ?? { root };
  root.board = state;
  Object.assign(state, { data, send: setTriggerValue });
  const cells = cellsOf(data.rows);
  const shape = JSON.stringify([data.rows.map((row) => row.name), cells.map((cell) => cell.code)]);
  if (state.shape !== shape) { build(state); state.shape = shape; } // else focus stays where it is
  cells.forEach((cell) => dress(state.buttons.get(cell.code), cell));
  fill(root);
}
