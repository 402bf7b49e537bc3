// Lines of boards of grids of numbers. What is pointed at lights up wherever it stands, and is said where a
// sheet says it. In a mask that is edited clicked cells turn over at once: a quick hand loses none.

import { inkOn, mix, rgb } from "./cells.js";
import { element, filled, isDark } from "./dom.js";
import { roving } from "./keys.js";

const sheets = new WeakMap();
const ON = 0.25; // the shade of a cell that is on
const LATE = 2000; // milliseconds in which an answer may be to an older click
const MIN = 16; // pixels of a cell that a finger can hit
const LEAST = 4; // of a cell that is only seen
const MOST = 40; // of a cell in a sheet that fits its room
const LEGIBLE = 23; // of a cell whose number can be read
const NAMES = 82; // of the names of the rows of a board
const BETWEEN = 22; // of the room between two boards

// What is new while a sheet stays; all else builds it anew.
const VARYING = new Set(["values", "shades", "texts", "marks", "says", "top", "edit"]);
const shapeOf = (data) => JSON.stringify(data, (name, value) => (VARYING.has(name) ? undefined : value));

const at = (parts, { row, column }) => (typeof parts === "string" ? parts : parts[row]?.[column] ?? "");
const namesOf = (parts, cell) => filled(at(parts, cell), { i: cell.row, j: cell.column }).split(" ").filter(Boolean);
const isOn = ({ grid, row, column }) => Number(grid.values[row][column]) === 1;

// What is said of a cell.
export function sayingOf(cell) {
  const { grid, board, row, column } = cell;
  const words = { board: board.title, row: grid.rows[row] ?? "", column: grid.columns[column] ?? "", value: grid.values[row][column] };
  const says = grid.states.length ? grid.states[Number(isOn(cell))][1] : at(grid.says, cell);
  return filled(says, words);
}

const mixed = { true: {}, false: {} }; // by theme: large sheets have many cells of few shades

function colourOf({ data, dark }, { grid, row, column }, mark) {
  const look = data.colours[dark ? "dark" : "light"];
  if (grid.values[row][column] === "nan") return rgb(look.nan);
  const fill = grid.scale === "plain" && grid.fills.length ? grid.fills[row][column] : null;
  const shade = grid.states.length ? ON : grid.shades[row][column];
  if (mark === "out" || fill === "" || shade === null) return rgb(look.masked);
  if (fill) return rgb(fill);
  mixed[dark][`${grid.scale} ${shade}`] ??= mix(look[grid.scale], shade);
  return mixed[dark][`${grid.scale} ${shade}`];
}

// Most cells of a large sheet stay as they are.
function dress(state, cell) {
  const { grid, board, row, column, node } = cell;
  const isOff = grid.states.length > 0 && !isOn(cell);
  const mark = grid.marked[`${row},${column}`] ?? (isOff ? "out" : "");
  const text = grid.states.length ? grid.states[Number(!isOff)][0] : grid.texts[row][column];
  const colour = colourOf(state, cell, isOff ? "out" : mark);
  const says = state.data.edit && !board.name ? "" : sayingOf(cell); // else the read-out says it
  const isChanged = Boolean(state.edited?.has(`${row},${column}`) && grid.states.length);
  const look = [text, mark, colour, says, isChanged].join();
  if (cell.look === look) return;
  cell.look = look;
  node.className = ["cell", mark, text.length > 5 && "long", isChanged && "changed"].filter(Boolean).join(" ");
  node.style.backgroundColor = `rgb(${colour.join()})`;
  node.style.color = inkOn(colour);
  node.textContent = text;
  const corner = at(grid.corners, cell);
  if (corner) {
    node.classList.add("cornered");
    node.append(element("span", "corner", corner));
  }
  if (!state.data.edit) node.title = says;
  if (!board.name) return;
  node.setAttribute("aria-label", says.includes(node.textContent) ? says : `${says}, ${node.textContent}`);
  if (grid.states.length) node.setAttribute("aria-selected", String(!isOff));
  if (mark === "picked") node.setAttribute("aria-current", "true");
  else node.removeAttribute("aria-current");
}

function cellOf(state, board, grid, row, column, firstRow) {
  const node = element(board.name ? "button" : "div", "cell", board.name && { tabIndex: -1, role: "gridcell" });
  Object.assign(node.dataset, { board: board.name, row: firstRow + row, column });
  state.cells.set(node, { board, grid, row, column, node });
  return node;
}

function gridOf(state, grid, board, firstRow) {
  const rows = grid.shades.map((row, i) => row.map((_shade, j) => cellOf(state, board, grid, i, j, firstRow)));
  if (grid.wraps) return element("div", "wraps", ...rows.flat());
  const hasSide = grid.rows.length > 0;
  const width = grid.columns.length || rows[0].length;
  grid.tops = grid.columns.map((name) => element("span", "top", name, { title: name }));
  grid.sides = grid.rows.map((name) => element("span", "side", name, { title: name }));
  const box = element("div", "grid", board.name && { role: "grid", "aria-label": board.title });
  box.style.gridTemplateColumns = `${hasSide ? "auto " : ""}repeat(${width}, var(--cell))`;
  if (grid.row_title || grid.column_title) {
    if (hasSide) box.append(element("span", "axis side", grid.row_title && `${grid.row_title} ↓`));
    const across = element("span", "axis across", grid.column_title && `${grid.column_title} →`);
    across.style.gridColumn = `span ${width}`;
    box.append(across);
  }
  if (grid.tops.length) box.append(...(hasSide ? [element("span")] : []), ...grid.tops);
  rows.forEach((cells, i) => {
    box.append(element("div", "row", board.name && { role: "row" }, grid.sides[i], ...cells));
  });
  return box;
}

function boardOf(state, board) {
  let firstRow = 0;
  const panels = board.panels.map((panel) => {
    const grid = gridOf(state, panel, board, firstRow);
    firstRow += panel.shades.length;
    return element("div", "panel", panel.title && element("div", "name", panel.title), grid);
  });
  const facts = board.facts.map((fact) => element("span", "", fact));
  const figure = element(
    "figure", facts.length ? "told" : "", board.hue && { "--hue": board.hue },
    element("figcaption", "", board.title),
    element("div", "panels", ...panels),
    facts.length > 0 && element("div", "facts", ...facts),
  );
  return element("div", "slot", board.sign && element("span", "sign", board.sign), figure);
}

const lineOf = (state, line) => element(
  "section", "",
  line.title && element("h2", "", line.title),
  line.words && element("p", "words", line.words),
  element("div", "boards", ...line.boards.map((board) => boardOf(state, board))),
  line.arithmetic.length > 0 && element("div", "arithmetic", ...line.arithmetic.map((text) => element("div", "", text))),
);

// A name lights up where all that lights up of its grid is in its row or its column.
function light(state, pointed) {
  const lights = new Set(pointed && namesOf(pointed.grid.lights.length ? pointed.grid.lights : pointed.grid.names, pointed));
  const lit = [...state.cells.values()].filter((cell) => {
    cell.names ??= namesOf(cell.grid.names, cell);
    const is = cell.names.some((name) => lights.has(name));
    cell.node.classList.toggle("lit", is);
    return is;
  });
  state.root.querySelectorAll(".on").forEach((name) => name.classList.remove("on"));
  new Set(lit.map((cell) => cell.grid)).forEach((grid) => {
    const own = lit.filter((cell) => cell.grid === grid);
    [[grid.sides, "row"], [grid.tops, "column"]].forEach(([among, side]) => {
      const places = new Set(own.map((cell) => cell[side]));
      if (places.size === 1) among?.[[...places][0]]?.classList.add("on");
    });
  });
  if (state.readout && pointed) state.readout.textContent = readOut(pointed, lit);
}

// What is said of a pair that is pointed at: its row, its column, and what each board has there.
export function readOut(pointed, lit) {
  const { grid, row, column } = pointed;
  const side = (title, among, i) => `${title} ${i + 1}${among[i] === String(i + 1) ? "" : `: ${among[i]}`}`;
  const same = lit.filter((cell) => cell.row === row && cell.column === column && cell.names[0] === pointed.names[0]);
  return [side(grid.row_title, grid.rows, row), side(grid.column_title, grid.columns, column), ...same.map(sayingOf)].join("\n");
}

// Turned over at once; what follows from it comes with the answer.
function flip(state, cell) {
  const { grid, row, column } = cell;
  const name = `${row},${column}`;
  if (!state.edited.delete(name)) state.edited.add(name);
  grid.values[row][column] = isOn(cell) ? "0" : "1";
  dress(state, cell);
  light(state, cell);
  state.text = null;
  state.sent = { key: [...state.edited].sort().join(";"), until: Date.now() + LATE };
  state.send("edit", { version: state.data.edit.version, cells: [...state.edited].map((one) => one.split(",").map(Number)) });
}

// Whether data answer an older click: the newest one is on its way.
function isLate({ sent, data }, { edit }) {
  if (!sent || !edit || data.edit?.version !== edit.version || Date.now() > sent.until) return false;
  return edit.cells.map(String).sort().join(";") !== sent.key;
}

// As many boards beside one another as still have cells that can be read and hit. Of a long sentence the mask
// stays large, to be clicked, and the others are small beside one another.
function fit(state) {
  const { root, data } = state;
  if (!data.fits) return;
  const width = root.clientWidth || 900;
  const boards = data.lines[0].boards.map(({ panels: [grid] }) => grid);
  const n = boards[0].columns.length;
  const most = width >= 900 ? 3 : width >= 620 ? 2 : 1;
  const side = (beside) => width / beside - (beside > 1 ? BETWEEN : 0) - NAMES;
  const cell = (beside) => Math.floor(side(beside) / n);
  const beside = Array.from({ length: most }, (_none, i) => most - i).find((count) => cell(count) >= MIN) ?? 1;
  const size = Math.max(data.edit ? MIN : LEAST, Math.min(MOST, cell(beside)));
  const isTight = beside === 1 && width >= 620;
  const pair = isTight ? Math.max(LEAST, cell(2)) : size;
  root.classList.toggle("tight", isTight);
  root.querySelectorAll("figure").forEach((figure, i) => {
    const isMask = boards[i].states.length > 0;
    const { length } = boards[i].columns; // as many as there are keys, or dimensions of the output
    const wide = isMask ? size : length === n ? pair : Math.max(3, Math.min(pair, Math.floor(side(beside) / length)));
    figure.style.setProperty("--cell", `${wide}px`);
    figure.style.setProperty("--high", `${isMask ? size : pair}px`);
    figure.classList.toggle("mask", isMask);
    figure.classList.toggle("small", wide < LEGIBLE && !isMask);
    if (data.edit) figure.querySelector(".grid").setAttribute("aria-hidden", String(!isMask)); // the read-out says all values
  });
}

const place = (node) => node?.dataset?.board && `[data-board="${node.dataset.board}"][data-row="${node.dataset.row}"][data-column="${node.dataset.column}"]`;

function build(state) {
  const { root, data } = state;
  state.cells = new Map();
  state.pointed = null;
  root.replaceChildren(...data.lines.map((line) => lineOf(state, line)));
  root.classList.toggle("fit", data.fits);
  state.readout = data.edit ? element("div", "readout", data.edit.hint, { "aria-live": "polite" }) : null;
  if (state.readout) root.querySelector(".boards").append(state.readout);
}

function draw(state) {
  const { root } = state;
  state.dark = isDark(root);
  fit(state);
  state.cells.forEach((cell) => dress(state, cell));
}

// A tab stop for each board; the focus stays at its cell.
function stops({ root }, focused) {
  for (const figure of root.querySelectorAll("figure")) {
    const first = figure.querySelector("button.picked") ?? figure.querySelector("button.cell");
    if (first) first.tabIndex = 0;
  }
  if (focused) root.querySelector(focused)?.focus({ preventScroll: true });
}

const panelsOf = (data) => data.lines.flatMap((line) => line.boards.flatMap((board) => board.panels));

function take(state, data) {
  const shape = shapeOf(data);
  const focused = place(state.root.getRootNode().activeElement);
  const isSame = shape === state.shape;
  panelsOf(data).forEach((grid) => {
    grid.marked = Object.fromEntries(grid.marks.map(([row, column, mark]) => [`${row},${column}`, mark]));
  });
  if (isSame) {
    const before = panelsOf(state.data);
    panelsOf(data).forEach((grid, i) => Object.assign(before[i], grid));
    state.data.edit = data.edit;
  } else Object.assign(state, { data, shape });
  state.sent = null;
  state.edited = new Set(data.edit?.cells.map(String));
  if (!isSame) build(state);
  draw(state);
  if (!isSame) stops(state, focused);
  if (state.pointed) light(state, state.pointed); // with the new numbers
}

function mount(parentElement) {
  const root = parentElement.querySelector(".sheet");
  const state = { root, data: null, send: null };
  const at = (event) => state.cells.get(event.target.closest(".cell"));
  const point = (cell) => {
    if (!cell && state.readout) return; // what was pointed at last can still be read
    state.pointed = cell;
    light(state, cell);
  };
  root.addEventListener("pointerover", (event) => point(at(event)));
  root.addEventListener("pointerleave", () => point());
  root.addEventListener("focusin", (event) => point(at(event)));
  const cellsOf = (node) => [...(node.closest("figure")?.querySelectorAll("button.cell") ?? [])];
  roving(root, cellsOf, { columnsOf: (node) => state.cells.get(node).grid.shades[0].length });
  root.addEventListener("click", (event) => {
    const cell = at(event);
    if (!cell?.board.name) return;
    const { board, row, column } = cell.node.dataset;
    if (state.data.edit) flip(state, cell);
    else state.send("pick", { board, cell: [Number(row), Number(column)] });
  });
  const theme = setInterval(() => root.isConnected && isDark(root) !== state.dark && draw(state), 500);
  const observer = new ResizeObserver(() => fit(state));
  observer.observe(root);
  sheets.set(parentElement, state);
  state.end = () => {
    clearInterval(theme);
    observer.disconnect();
    sheets.delete(parentElement);
  };
  return state;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const state = sheets.get(parentElement) ?? mount(parentElement);
  const text = JSON.stringify(data);
  state.send = setTriggerValue;
  if (text !== state.text && !isLate(state, data)) {
    state.text = text;
    take(state, JSON.parse(text)); // its own: a click changes it
  }
  return state.end;
}
