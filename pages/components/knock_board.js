// The parts of a model as buttons: pressed is off.

import { actButton, element, fill, named } from "./dom.js";
import { roving, tabStop } from "./keys.js";

// What is said of a part: its name, and what it is worth where that was measured.
export const said = (cell) => [cell.name, cell.worth].filter(Boolean).join("; ");

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
  const made = actButton("", "", () => state.send("pick", cell.code));
  made.dataset.code = cell.code;
  state.buttons.set(cell.code, made);
  return made;
}

// Cells by what each is part of, in their order.
const grouped = (cells, by) => [...new Set(cells.map((cell) => cell[by]))]
  .map((name) => [name, cells.filter((cell) => cell[by] === name)]);

function boxed(state, [name, cells]) {
  const buttons = cells.map((cell) => button(state, cell));
  return element("div", "group", element("span", "what", name), element("div", "cells", ...buttons));
}

function build(state) {
  const { root, data } = state;
  root.textContent = "";
  Object.assign(root, { role: "group", ariaLabel: data.label });
  state.buttons = new Map();
  grouped(data.cells, "row").forEach(([row, cells]) => {
    const whole = cells.filter(({ group }) => !group).map((cell) => button(state, cell));
    const groups = grouped(cells.filter(({ group }) => group), "group").map((group) => boxed(state, group));
    root.append(element("div", "layer", element("div", "name", element("span", "", row), ...whole), element("div", "groups", ...groups)));
  });
  state.all = [...root.querySelectorAll("button")];
  tabStop(state.all, state.all[0]);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".board");
  if (!root.board) roving(root, () => root.board.all);
  const state = (root.board ??= { root });
  Object.assign(state, { data, send: setTriggerValue });
  const { cells } = data;
  const shape = JSON.stringify(cells.map(({ row, code }) => [row, code]));
  if (state.shape !== shape) { build(state); state.shape = shape; } // else focus stays where it is
  cells.forEach((cell) => dress(state.buttons.get(cell.code), cell));
  fill(root);
}
