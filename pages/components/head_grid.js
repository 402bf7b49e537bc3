// All heads as small maps on canvases; the animation moves them.

import { abgr, cellUnder, colours, nameAt, paintCells, paintVeil, part, pictured, rgb, strongest, tipOver, unpack, weightInk, weightOf } from "./cells.js";
import { openTables } from "./data_table.js";
import { actButton, bytes, drawn, element, headName, paper, presentedHeight, saveButtons, fill, whole } from "./dom.js";
import { showAnimation, startAt, stopAnimation, tellDrawn } from "./animation.js";
import { forgetFrame } from "./events.js";
import { roving, tabStop } from "./keys.js";

const LAYER = 54; // pixels that the names of the layers take
const LARGEST = 190;
const FEW_LAYERS = 4; // of so many, all heads stand in one screen
const ALL_HIGH = 340; // pixels that they take then
const AROUND = 170; // pixels of what stands above and below them, in presenter mode
const LINE = 13; // pixels of a line of the labels below the maps
const LETTER = 5.4; // pixels of a letter of the labels below the maps, on average

const ZOOM = 4; // pixels of a canvas to one of the picture, so that the edges of patches are sharp

// What each patch gets: from one row of a map, or from all of them on average.
export function received(weights, rows, columns, { first, row }) {
  const patches = new Float32Array(columns - first);
  for (let i = 0; i < patches.length; i += 1) {
    if (row !== null) patches[i] = weights[row * columns + first + i];
    else for (let r = 0; r < rows; r += 1) patches[i] += weights[r * columns + first + i] / rows;
  }
  return patches;
}

// As top_of in Python: a weight that one in a hundred exceeds.
function strong(weights) {
  const known = weights.filter((weight) => !Number.isNaN(weight)).sort();
  return known[Math.floor((known.length - 1) * 0.99)];
}

const weightsOf = (view, index) => part(view.shown, index, view.shape[2] * view.shape[3]);

// Draw a head, over the picture or as a matrix; returns its largest weight.
function paint(canvas, view, index) {
  const [, , rows, columns] = view.shape;
  const weights = weightsOf(view, index);
  const spot = strongest(weights, columns);
  if (view.over) {
    const patches = received(weights, rows, columns, view.over);
    const edge = view.over.size * ZOOM;
    Object.assign(canvas, { width: edge, height: edge });
    paintVeil(canvas, view.over.canvas, patches, (view.top ?? Math.max(...patches)) || 1);
    return spot;
  }
  const top = (view.top ?? (columns >= view.many ? strong(weights) : spot.value)) || 1;
  paintCells(canvas, weights, columns, weightInk(view.table, view.maskedInk, top));
  return spot;
}

const places = (view, row, column) => [nameAt(view.rows, row, view.block), `${view.words.key} ${nameAt(view.keys, column, view.block)}`];

// What is said of a cell: of a head over the picture, of the patch and what it gets.
export function describe(view, index, row, column) {
  const [, heads, rows, columns] = view.shape;
  const { words, over } = view;
  const weights = weightsOf(view, index);
  const name = view.block > 1 ? words.largest : words.weight;
  const said = over
    ? [over.who, `${words.patch} ${row + 1},${column + 1}: ${words.weight} ${received(weights, rows, columns, over)[row * over.side + column].toFixed(4)}`]
    : [...places(view, row, column), `${name} ${weightOf(words, weights[row * columns + column])}`];
  return [headName(words, Math.floor(index / heads), index % heads), ...said].join("\n");
}

function build(root, view) {
  const [layers, heads] = view.shape;
  const { words } = view;
  const count = (n, make) => Array.from({ length: n }, (_none, i) => make(i));
  const names = count(heads, (head) => element("span", "name", { role: "columnheader" }, `${words.head} ${head + 1}`));
  const rows = count(layers, (layer) => {
    const cells = count(heads, () => element("button", "", { role: "gridcell" }, element("canvas"), element("span", "what")));
    const name = element("span", "name layer", { role: "rowheader" }, `${words.layer} ${layer + 1}`);
    return element("div", "row", { role: "row" }, name, ...cells);
  });
  const top = element("div", "row", { role: "row" }, element("span"), ...names);
  const grid = element("div", "grid", { role: "grid" }, top, ...rows);
  grid.style.gridTemplateColumns = `auto repeat(${heads}, auto)`;
  const animation = element("div", "animation");
  const title = element("h2", "title", view.title);
  const bar = saveButtons(words, () => picture(root));
  bar.prepend(actButton("small", words.table, () => openTables(root, words.grid, [table(root.headGrid)], words)));
  root.replaceChildren(...(view.title ? [title] : []), animation, grid, bar);
  return { grid, buttons: [...grid.querySelectorAll("button")], animation, title };
}

// A row a head: what it does, and its strongest cell.
function table({ view, at, spots }) {
  const { words } = view;
  const heads = view.shape[1];
  return {
    caption: `${words.step} ${whole(view.frames[at].step)}`,
    head: [words.head, words.does, words.largest, words.query, words.key],
    rows: spots.map(({ value, row, column }, i) => [
      headName(words, Math.floor(i / heads), i % heads),
      view.frames[at].labels[i] ?? "", value, nameAt(view.rows, row, view.block), nameAt(view.keys, column, view.block),
    ]),
  };
}

// The width of a word in Latin letters: one of Hangul, kana or Han is twice as wide.
const widthOf = (word) => word.length + (word.match(/[\u1100-\u11ff\u2e80-\uffdc]/g)?.length ?? 0);

// How many lines of so many letters a label takes, cut between words.
export function wrapped(label, letters) {
  return label.split(" ").map(widthOf).reduce(([count, at], width) => (
    at + width + 1 > letters && at ? [count + 1, width] : [count, at + width + (at ? 1 : 0)]
  ), [1, 0])[0];
}

// How many lines of so many letters the longest label of the whole animation takes.
function lines(state, letters) {
  const labels = new Set(state.view.frames.flatMap((frame) => [...frame.labels]));
  return Math.max(1, ...[...labels].map((label) => wrapped(label, letters)));
}

function fit(root, state) {
  const [layers, heads, queries, keys] = state.view.shape;
  const [rows, columns] = state.view.over ? [1, 1] : [queries, keys];
  const room = (root.clientWidth - LAYER) / heads - 6;
  const cell = Math.max(46, Math.min(LARGEST, Math.floor(room)));
  root.style.setProperty("--cell", `${cell}px`);
  const style = getComputedStyle(state.parts.buttons[0].lastChild); // readers may space letters and lines
  const line = Math.ceil(parseFloat(style.lineHeight)) || LINE;
  const n = lines(state, Math.floor((cell - 8) / (LETTER + (parseFloat(style.letterSpacing) || 0))));
  root.style.setProperty("--lines", n);
  root.style.setProperty("--line", `${line}px`);
  const presented = presentedHeight(root);
  const allHigh = presented ? presented - AROUND : ALL_HIGH;
  const high = layers <= FEW_LAYERS ? Math.max(52, allHigh / layers - line * n - 18) : LARGEST;
  const inner = Math.min(cell - 8, high);
  // square cells, but where a map would be a mere line: at least half as high as wide, and so on
  const width = inner * Math.min(1, Math.max(columns / rows, 0.5));
  const height = inner * Math.min(1, Math.max(rows / columns, 0.5));
  root.style.setProperty("--map", `${Math.round(height)}px`);
  state.parts.buttons.forEach((button) => {
    const canvas = button.firstChild;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  });
}

function mark(state, [layer, head]) {
  const { buttons } = state.parts;
  const chosen = buttons[layer * state.view.shape[1] + head];
  buttons.forEach((button) => button.setAttribute("aria-selected", String(button === chosen)));
  tabStop(buttons, chosen);
}

function pick(state, index, wait) {
  const heads = state.view.shape[1];
  const head = [Math.floor(index / heads), index % heads];
  state.pending = { head, until: Date.now() + 1500 };
  mark(state, head);
  clearTimeout(state.timer);
  state.timer = setTimeout(() => state.send("pick", head), wait);
}

function listen(root, state) {
  const at = (event) => state.parts.buttons.indexOf(event.target.closest(".grid button"));
  root.addEventListener("click", (event) => {
    if (at(event) >= 0) pick(state, at(event), 0);
  });
  roving(root, () => state.parts.buttons, { columnsOf: () => state.view.shape[1], arrived: (to) => pick(state, to, 120) });
  root.after(tipOver([root], (event) => {
    const { over, shape } = state.view;
    const canvas = event.target.closest("button canvas");
    const cell = canvas && cellUnder(event, canvas, over ? [over.side, over.side] : shape.slice(2));
    return cell && describe(state.view, at(event), ...cell);
  }));
}

// The whole grid as one <svg>, its maps as pictures of their own cells.
function picture(root) {
  const { view, parts } = root.headGrid;
  const [layers, heads] = view.shape;
  const style = getComputedStyle(root);
  const ink = style.getPropertyValue("--st-text-color").trim() || "#222";
  const side = 120;
  const svg = drawn("svg", { width: 70 + heads * (side + 8), height: 30 + layers * (side + 26) + 8, "font-family": style.fontFamily || "sans-serif", "font-size": 12 });
  svg.append(drawn("rect", { width: "100%", height: "100%", fill: paper(root) }));
  const say = (x, y, text) => svg.append(drawn("text", { x, y, fill: ink, "text-anchor": "middle" }, text));
  for (let head = 0; head < heads; head += 1) say(70 + head * (side + 8) + side / 2, 20, `${view.words.head} ${head + 1}`);
  parts.buttons.forEach((button, i) => {
    const [layer, head] = [Math.floor(i / heads), i % heads];
    const [x, y] = [70 + head * (side + 8), 30 + layer * (side + 26)];
    if (head === 0) say(34, y + side / 2, `${view.words.layer} ${layer + 1}`);
    svg.append(drawn("image", {
      x, y, width: side, height: side, href: button.firstChild.toDataURL("image/png"), "image-rendering": "pixelated",
    }));
    say(x + side / 2, y + side + 14, view.frames[root.headGrid.at].labels[i] ?? "");
  });
  return [svg, `attention-step-${view.frames[root.headGrid.at].step}`];
}

function show(state) {
  const { view, parts } = state;
  const { words } = view;
  const heads = view.shape[1];
  state.spots = parts.buttons.map((button, i) => paint(button.firstChild, view, i));
  parts.buttons.forEach((button, i) => {
    const { value, row, column } = state.spots[i];
    const label = view.frames[state.at].labels[i] ?? "";
    button.lastChild.textContent = label;
    button.title = label;
    button.classList.toggle("dim", Boolean(view.dim[i]));
    const said = [...(label ? [label] : []), `${words.largest} ${value.toFixed(2)}`, ...places(view, row, column)];
    button.setAttribute("aria-label", `${headName(words, Math.floor(i / heads), i % heads)}: ${said.join(", ")}`);
  });
}

function blend({ parts, view }) {
  parts.buttons.forEach((button, i) => paint(button.firstChild, view, i));
}

function watch(root, state) {
  const observer = new ResizeObserver(() => fit(root, state));
  observer.observe(root);
  return () => {
    observer.disconnect();
    stopAnimation(state);
    forgetFrame();
    state.end = null;
  };
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".heads");
  const view = unpack(data);
  view.table = colours(view.scale);
  view.maskedInk = abgr(rgb(view.masked));
  view.keys = view.key.map((name, i) => `${i + 1 + (view.first ?? 0)}: ${name}`);
  if (view.over) view.over.canvas = pictured(bytes(view.over.pixels), view.over.channels);
  const state = (root.headGrid ??= { listening: false, at: null, show, blend });
  state.send = setTriggerValue;
  const shape = view.shape.slice(0, 2).join();
  const before = state.view;
  state.view = view;
  if (state.shape !== shape) {
    state.parts = build(root, view);
    state.shape = shape;
  }
  root.classList.toggle("named", view.frames[0].labels.length > 0);
  state.parts.grid.setAttribute("aria-label", view.words.grid);
  state.parts.title.textContent = view.title;
  startAt(state, before);
  show(state);
  showAnimation(state);
  tellDrawn(state);
  const pending = state.pending && Date.now() < state.pending.until ? state.pending.head : null;
  if (pending && String(pending) !== String(view.chosen)) mark(state, pending);
  else { state.pending = null; mark(state, view.chosen); }
  if (!state.listening) { listen(root, state); state.listening = true; }
  fit(root, state);
  fill(root);
  state.end ??= watch(root, state);
  return state.end;
}
