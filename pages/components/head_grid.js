// All heads as small maps on canvases; the animation moves them.

import { colours, rgb } from "./colours.js";
import { openTables } from "./data_table.js";
import { drawn, element, headName, paper, placeTip, presentedHeight, saveButtons, fill } from "./dom.js";
import { showAnimation, startAt, stopAnimation, tellDrawn } from "./animation.js";
import { forgetFrame } from "./events.js";
import { unpack } from "./packed.js";

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

// A head over the picture: what is read of it is orange.
function paintOver(canvas, view, patches) {
  const { picture, ink, side, size } = view.over;
  const edge = size * ZOOM;
  const patch = edge / side;
  canvas.width = edge;
  canvas.height = edge;
  const context = canvas.getContext("2d");
  if (picture.canvas) {
    context.imageSmoothingEnabled = false;
    context.drawImage(picture.canvas, 0, 0, edge, edge);
  }
  const largest = patches.reduce((most, value) => Math.max(most, value), 0);
  const top = view.top === null ? largest || 1 : view.top;
  patches.forEach((value, i) => {
    context.fillStyle = `rgba(${ink}, ${Math.min(1, value / top) * 0.8})`;
    context.fillRect((i % side) * patch, Math.floor(i / side) * patch, patch, patch);
  });
}

// The picture (C, size, size) as a canvas of its own pixels.
function pictured({ pixels, size, channels }) {
  const canvas = document.createElement("canvas");
  canvas.width = size;
  canvas.height = size;
  const bytes = Uint8Array.from(atob(pixels), (c) => c.charCodeAt(0));
  const image = new ImageData(size, size);
  for (let i = 0; i < size * size; i += 1) {
    for (let c = 0; c < 3; c += 1) image.data[4 * i + c] = bytes[(channels === 3 ? c : 0) * size * size + i];
    image.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// As top_of in Python: a weight that one in a hundred exceeds.
function strong(weights) {
  const known = weights.filter((weight) => !Number.isNaN(weight)).sort();
  return known[Math.floor((known.length - 1) * 0.99)];
}

function paint(canvas, view, index) {
  const [, , rows, columns] = view.shape;
  const weights = view.shown.subarray(index * rows * columns, (index + 1) * rows * columns);
  let largest = 0;
  let strongest = 0;
  weights.forEach((weight, i) => { if (weight > largest) { largest = weight; strongest = i; } });
  const spot = { largest, row: Math.floor(strongest / columns), column: strongest % columns };
  if (view.over) {
    paintOver(canvas, view, received(weights, rows, columns, view.over));
    return spot;
  }
  const top = (view.top ?? (columns >= view.many ? strong(weights) : largest)) || 1;
  canvas.width = columns;
  canvas.height = rows;
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const [r, g, b] = rgb(view.masked);
  const masked = (255 << 24) | (b << 16) | (g << 8) | r;
  weights.forEach((weight, i) => {
    pixels[i] = Number.isNaN(weight) ? masked : view.table[Math.min(255, Math.round((weight / top) * 255))];
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return spot;
}

export function token(tokens, position, view) {
  const first = position * view.block;
  const last = Math.min(first + view.block, tokens.length) - 1;
  const one = (i) => `${i + 1 + (view.first ?? 0)}: ${tokens[i]}`;
  return first === last ? one(first) : `${one(first)} ${view.words.to} ${one(last)}`;
}

// What is said of a query: its words, of several taken together those of the first and the last.
export function queryOf(view, position) {
  const first = position * view.block;
  const last = Math.min(first + view.block, view.rows.length) - 1;
  return first === last ? view.rows[first] : `${view.rows[first]} ${view.words.to} ${view.rows[last]}`;
}

// Of a head that is drawn over the picture: the patch under the pointer, and what it gets.
export function describeOver(view, layer, head, row, column) {
  const [, heads, rows, columns] = view.shape;
  const { words, over } = view;
  const first = (layer * heads + head) * rows * columns;
  const patches = received(view.shown.subarray(first, first + rows * columns), rows, columns, over);
  return `${headName(words, layer, head)}\n${over.who}\n`
    + `${words.patch} ${row + 1},${column + 1}: ${words.weight} ${patches[row * over.side + column].toFixed(4)}`;
}

export function describe(view, layer, head, row, column) {
  const [, heads, rows, columns] = view.shape;
  const weight = view.shown[((layer * heads + head) * rows + row) * columns + column];
  const { words } = view;
  const name = view.block > 1 ? words.largest : words.weight;
  const value = Number.isNaN(weight) ? `0 (${words.masked})` : weight.toFixed(4);
  return `${headName(words, layer, head)}\n`
    + `${queryOf(view, row)}\n`
    + `${words.key} ${token(view.key, column, view)}\n${name} ${value}`;
}

function build(root, view) {
  const [layers, heads] = view.shape;
  root.textContent = "";
  const grid = element("div", "grid");
  grid.setAttribute("role", "grid");
  grid.style.gridTemplateColumns = `auto repeat(${heads}, auto)`;
  const top = element("div", "row");
  top.setAttribute("role", "row");
  top.append(element("span"));
  for (let head = 0; head < heads; head += 1) {
    const name = element("span", "name", `${view.words.head} ${head + 1}`);
    name.setAttribute("role", "columnheader");
    top.append(name);
  }
  grid.append(top);
  const buttons = [];
  for (let layer = 0; layer < layers; layer += 1) {
    const row = element("div", "row");
    row.setAttribute("role", "row");
    const name = element("span", "name layer", `${view.words.layer} ${layer + 1}`);
    name.setAttribute("role", "rowheader");
    row.append(name);
    for (let head = 0; head < heads; head += 1) {
      const button = element("button");
      button.type = "button";
      button.setAttribute("role", "gridcell");
      button.dataset.layer = layer;
      button.dataset.head = head;
      button.append(document.createElement("canvas"), element("span", "what"));
      row.append(button);
      buttons.push(button);
    }
    grid.append(row);
  }
  const tip = element("div", "tip");
  tip.hidden = true;
  const animation = element("div", "animation");
  const title = element("h2", "title", view.title);
  if (view.title) root.append(title);
  const bar = saveButtons(view.words, () => picture(root));
  const numbers = element("button", "small", view.words.table);
  numbers.type = "button";
  numbers.addEventListener("click", () => openTables(root, view.words.grid, [table(root.headGrid)], view.words));
  bar.prepend(numbers);
  root.append(animation, grid, tip, bar);
  return { grid, buttons, tip, animation, title };
}

// A row a head: what it does, and its strongest cell.
function table({ view, at, spots }) {
  const { words } = view;
  const heads = view.shape[1];
  return {
    caption: `${words.step} ${view.frames[at].step.toLocaleString("en")}`,
    head: [words.head, words.does, words.largest, words.query, words.key],
    rows: spots.map(({ largest, row, column }, i) => [
      headName(words, Math.floor(i / heads), i % heads),
      view.frames[at].labels[i] ?? "", largest, queryOf(view, row), token(view.key, column, view),
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
  const heads = state.view.shape[1];
  state.parts.buttons.forEach((button, i) => {
    const is = i === layer * heads + head;
    button.setAttribute("aria-selected", String(is));
    button.tabIndex = is ? 0 : -1;
  });
}

function pick(state, layer, head, wait) {
  state.pending = { head: [layer, head], until: Date.now() + 1500 };
  mark(state, [layer, head]);
  clearTimeout(state.timer);
  state.timer = setTimeout(() => state.send("pick", [layer, head]), wait);
}

function listen(root, state) {
  const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  root.addEventListener("click", (event) => {
    const button = event.target.closest(".grid button");
    if (button) pick(state, Number(button.dataset.layer), Number(button.dataset.head), 0);
  });
  root.addEventListener("keydown", (event) => {
    const button = event.target.closest(".grid button");
    const step = STEPS[event.key];
    if (!button || !step) return;
    event.preventDefault();
    const [layers, heads] = state.view.shape;
    const layer = Number(button.dataset.layer) + step[0];
    const head = Number(button.dataset.head) + step[1];
    if (layer < 0 || head < 0 || layer >= layers || head >= heads) return;
    pick(state, layer, head, 120);
    state.parts.buttons[layer * heads + head].focus();
  });
  root.addEventListener("pointermove", (event) => {
    const { tip } = state.parts;
    const canvas = event.target.closest("button canvas");
    tip.hidden = !canvas || event.pointerType === "touch";
    if (tip.hidden) return;
    const box = canvas.getBoundingClientRect();
    const { over, shape } = state.view;
    const [rows, columns] = over ? [over.side, over.side] : shape.slice(2);
    const cell = (part, whole, n) => Math.max(0, Math.min(n - 1, Math.floor((part / whole) * n)));
    const row = cell(event.clientY - box.top, box.height, rows);
    const column = cell(event.clientX - box.left, box.width, columns);
    const { layer, head } = canvas.parentElement.dataset;
    tip.textContent = (over ? describeOver : describe)(state.view, Number(layer), Number(head), row, column);
    placeTip(tip, event.clientX, event.clientY);
  });
  root.addEventListener("pointerleave", () => { state.parts.tip.hidden = true; });
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
      x, y, width: side, height: side, href: button.firstChild.toDataURL("image/png"), style: "image-rendering: pixelated",
    }));
    say(x + side / 2, y + side + 14, view.frames[root.headGrid.at].labels[i] ?? "");
  });
  return [svg, `attention-step-${view.frames[root.headGrid.at].step}`];
}

function show(state) {
  const { view, parts } = state;
  const { words } = view;
  state.spots = parts.buttons.map((button, i) => paint(button.firstChild, view, i));
  parts.buttons.forEach((button, i) => {
    const { largest, row, column } = state.spots[i];
    const label = view.frames[state.at].labels[i] ?? "";
    button.lastChild.textContent = label;
    button.title = label;
    button.classList.toggle("dim", Boolean(view.dim[i]));
    button.setAttribute("aria-label", `${headName(words, Number(button.dataset.layer), Number(button.dataset.head))}: `
      + `${label ? `${label}, ` : ""}${words.largest} ${largest.toFixed(2)}, `
      + `${queryOf(view, row)}, ${words.key} ${token(view.key, column, view)}`);
  });
}

function blend({ parts, view }) {
  parts.buttons.forEach((button, i) => paint(button.firstChild, view, i));
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".heads");
  const view = unpack(data);
  view.table = colours(view.scale);
  if (view.over) view.over.picture = { canvas: pictured(view.over) };
  const state = root.headGrid ?? { listening: false, at: null, show, blend };
  root.headGrid = state;
  const call = {};
  Object.assign(state, { call, send: setTriggerValue });
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
  if (!state.observer) {
    state.observer = new ResizeObserver(() => fit(root, state));
    state.observer.observe(root);
  }
  return () => {
    if (state.call !== call) return; // a newer one came while this one was on its way
    state.observer.disconnect();
    state.observer = null;
    stopAnimation(state);
    forgetFrame();
  };
}
