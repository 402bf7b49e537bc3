// Lines of boards of panels of cells. Everything is small, so it is built anew for every message.

import { element, named } from "./dom.js";
import { isDark } from "./theme.js";

const sheets = new WeakMap();

function cellOf([text, colours, tip, corner, links, role], board, row, column) {
  const made = element(board.name ? "button" : "div", "cell", text);
  const [fl, il, fd, id] = colours;
  made.style.cssText = `--fl:${fl};--il:${il};--fd:${fd};--id:${id}`;
  if (role) made.classList.add(role);
  if (text.length > 5) made.classList.add("long");
  if (corner) {
    made.classList.add("cornered");
    made.append(element("span", "corner", corner));
  }
  if (tip) made.title = tip;
  made.links = links;
  if (board.name) {
    made.type = "button";
    made.tabIndex = -1;
    named(made, tip || board.title);
    if (role === "picked") made.setAttribute("aria-current", "true");
    Object.assign(made.dataset, { board: board.name, row, column });
  }
  return made;
}

function gridOf(panel, board, firstRow) {
  const grid = element("div", panel.wraps ? "wraps" : "grid");
  const cells = panel.cells.map((row, i) => row.map((cell, j) => cellOf(cell, board, firstRow + i, j)));
  if (panel.wraps) {
    grid.append(...cells.flat());
    return grid;
  }
  const hasSide = panel.rows.length > 0;
  const width = panel.columns.length || cells[0].length;
  grid.style.gridTemplateColumns = `${hasSide ? "auto " : ""}repeat(${width}, var(--cell))`;
  if (panel.row_title || panel.column_title) {
    if (hasSide) grid.append(element("span", "axis side", panel.row_title && `${panel.row_title} ↓`));
    const across = element("span", "axis across", panel.column_title && `${panel.column_title} →`);
    across.style.gridColumn = `span ${width}`;
    grid.append(across);
  }
  if (panel.columns.length) {
    if (hasSide) grid.append(element("span"));
    panel.columns.forEach((name) => grid.append(titled("top", name)));
  }
  cells.forEach((row, i) => {
    if (hasSide) grid.append(titled("side", panel.rows[i]));
    grid.append(...row);
  });
  return grid;
}

function titled(className, text) {
  const made = element("span", className, text);
  made.title = text;
  return made;
}

function boardOf(board) {
  const slot = element("div", "slot");
  if (board.sign) slot.append(element("span", "sign", board.sign));
  const figure = element("figure", board.facts.length ? "told" : "");
  if (board.hue) figure.style.setProperty("--hue", board.hue);
  figure.append(element("figcaption", "", board.title));
  const panels = element("div", "panels");
  let firstRow = 0;
  for (const panel of board.panels) {
    const place = element("div", "panel");
    if (panel.title) place.append(element("div", "name", panel.title));
    place.append(gridOf(panel, board, firstRow));
    firstRow += panel.cells.length;
    panels.append(place);
  }
  figure.append(panels);
  if (board.facts.length) {
    const facts = element("div", "facts");
    facts.append(...board.facts.map((fact) => element("span", "", fact)));
    figure.append(facts);
  }
  slot.append(figure);
  return slot;
}

function lineOf(line) {
  const section = element("section");
  if (line.title) section.append(element("h2", "", line.title));
  if (line.words) section.append(element("p", "words", line.words));
  const boards = element("div", "boards");
  boards.append(...line.boards.map(boardOf));
  section.append(boards);
  if (line.arithmetic.length) {
    const told = element("div", "arithmetic");
    told.append(...line.arithmetic.map((text) => element("div", "", text)));
    section.append(told);
  }
  return section;
}

function light(state, links) {
  for (const cell of state.root.querySelectorAll(".cell")) {
    cell.classList.toggle("lit", links.length > 0 && links.includes(cell.links[0]));
  }
}

function place(cell) {
  return cell?.dataset?.board && `[data-board="${cell.dataset.board}"][data-row="${cell.dataset.row}"][data-column="${cell.dataset.column}"]`;
}

function draw(state) {
  const focused = place(state.root.getRootNode().activeElement);
  state.root.replaceChildren(...state.data.lines.map(lineOf));
  for (const figure of state.root.querySelectorAll("figure")) {
    const first = figure.querySelector("button.picked") ?? figure.querySelector("button.cell");
    if (first) first.tabIndex = 0;
  }
  state.root.classList.toggle("dark", isDark(state.root));
  if (focused) state.root.querySelector(focused)?.focus({ preventScroll: true });
}

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function move(state, event) {
  const step = MOVES[event.key];
  const { board, row, column } = event.target.dataset ?? {};
  if (!step || !board) return;
  const to = `[data-board="${board}"][data-row="${Number(row) + step[0]}"][data-column="${Number(column) + step[1]}"]`;
  const cell = state.root.querySelector(to);
  event.preventDefault();
  event.stopPropagation();
  if (!cell) return;
  event.target.tabIndex = -1;
  cell.tabIndex = 0;
  cell.focus();
}

function mount(parentElement) {
  const root = parentElement.querySelector(".sheet");
  const state = { root, data: null, send: null };
  root.addEventListener("pointerover", (event) => light(state, event.target.closest(".cell")?.links ?? []));
  root.addEventListener("pointerleave", () => light(state, []));
  root.addEventListener("focusin", (event) => light(state, event.target.links ?? []));
  root.addEventListener("keydown", (event) => move(state, event));
  root.addEventListener("click", (event) => {
    const cell = event.target.closest("button.cell");
    if (!cell) return;
    const { board, row, column } = cell.dataset;
    state.send("pick", { board, cell: [Number(row), Number(column)] });
  });
  state.theme = setInterval(() => root.isConnected && root.classList.toggle("dark", isDark(root)), 500);
  sheets.set(parentElement, state);
  return state;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const state = sheets.get(parentElement) ?? mount(parentElement);
  const text = JSON.stringify(data);
  const call = {};
  Object.assign(state, { call, send: setTriggerValue });
  if (text !== state.text) {
    Object.assign(state, { data, text });
    draw(state);
  }
  return () => {
    if (state.call !== call) return; // a newer one came while this one was on its way
    clearInterval(state.theme);
    sheets.delete(parentElement);
  };
}
