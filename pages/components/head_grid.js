// All heads as small canvases. One element keeps its grid across updates; only pixels change.

const HALF = new Float32Array(65536); // float16 bits -> value, so that hover reads the exact weight
for (let bits = 0; bits < 65536; bits += 1) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) HALF[bits] = fraction ? NaN : sign * Infinity;
  else if (exponent === 0) HALF[bits] = sign * fraction * 2 ** -24;
  else HALF[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function unpack(bytes) {
  const copy = bytes.slice(); // its own buffer: offsets are then multiples of four
  const length = new DataView(copy.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(copy.subarray(4, 4 + length)));
  const body = copy.buffer.slice(4 + length);
  const values = header.kind === "float16"
    ? Float32Array.from(new Uint16Array(body), (bits) => HALF[bits])
    : new Float32Array(body);
  return { ...header, values };
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

function colours(scale) {
  const stops = scale.map(rgb);
  const table = new Uint32Array(256);
  for (let i = 0; i < 256; i += 1) {
    const place = (i / 255) * (stops.length - 1);
    const from = Math.min(Math.floor(place), stops.length - 2);
    const [r, g, b] = stops[from].map((v, c) => Math.round(v + (stops[from + 1][c] - v) * (place - from)));
    table[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return table;
}

function paint(canvas, view, index) {
  const [, , rows, columns] = view.shape;
  const weights = view.values.subarray(index * rows * columns, (index + 1) * rows * columns);
  let largest = 0;
  let strongest = 0;
  weights.forEach((weight, i) => { if (weight > largest) { largest = weight; strongest = i; } });
  const top = view.top === null ? largest || 1 : view.top;
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
  return { largest, row: Math.floor(strongest / columns), column: strongest % columns };
}

function token(tokens, place, view) {
  const first = place * view.block;
  const last = Math.min(first + view.block, tokens.length) - 1;
  const one = (i) => `${i + 1}: ${tokens[i]}`;
  return first === last ? one(first) : `${one(first)} ${view.words.to} ${one(last)}`;
}

function describe(view, layer, head, row, column) {
  const [, heads, rows, columns] = view.shape;
  const weight = view.values[((layer * heads + head) * rows + row) * columns + column];
  const { words } = view;
  const name = view.block > 1 ? words.largest : words.weight;
  const value = Number.isNaN(weight) ? `0 (${words.masked})` : weight.toFixed(4);
  return `${words.layer} ${layer + 1}, ${words.head.toLowerCase()} ${head + 1}\n`
    + `${words.query} ${token(view.query, row, view)}\n`
    + `${words.key} ${token(view.key, column, view)}\n${name} ${value}`;
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
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
      button.append(document.createElement("canvas"));
      row.append(button);
      buttons.push(button);
    }
    grid.append(row);
  }
  const tip = element("div", "tip");
  tip.hidden = true;
  root.append(grid, tip);
  return { grid, buttons, tip };
}

function fit(root, state) {
  const [, heads, rows, columns] = state.view.shape;
  const room = (root.clientWidth - 70) / heads - 6;
  const cell = Math.max(46, Math.min(150, Math.floor(room)));
  root.style.setProperty("--cell", `${cell}px`);
  const inner = cell - 8;
  const scale = inner / Math.max(rows, columns);
  state.parts.buttons.forEach((button) => {
    const canvas = button.firstChild;
    canvas.style.width = `${Math.max(2, columns * scale)}px`;
    canvas.style.height = `${Math.max(2, rows * scale)}px`;
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
  state.pending = { place: [layer, head], until: Date.now() + 1500 };
  mark(state, [layer, head]);
  clearTimeout(state.timer);
  state.timer = setTimeout(() => state.send("pick", [layer, head]), wait);
}

function listen(root, state) {
  const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) pick(state, Number(button.dataset.layer), Number(button.dataset.head), 0);
  });
  root.addEventListener("keydown", (event) => {
    const button = event.target.closest("button");
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
    const canvas = event.target.closest("canvas");
    tip.hidden = !canvas || event.pointerType === "touch";
    if (tip.hidden) return;
    const box = canvas.getBoundingClientRect();
    const [, , rows, columns] = state.view.shape;
    const cell = (part, whole, n) => Math.max(0, Math.min(n - 1, Math.floor((part / whole) * n)));
    const row = cell(event.clientY - box.top, box.height, rows);
    const column = cell(event.clientX - box.left, box.width, columns);
    const { layer, head } = canvas.parentElement.dataset;
    tip.textContent = describe(state.view, Number(layer), Number(head), row, column);
    const beside = event.clientX + 14 + tip.offsetWidth > window.innerWidth;
    tip.style.left = `${beside ? event.clientX - 14 - tip.offsetWidth : event.clientX + 14}px`;
    const below = event.clientY + 14 + tip.offsetHeight > window.innerHeight;
    tip.style.top = `${below ? event.clientY - 14 - tip.offsetHeight : event.clientY + 14}px`;
  });
  root.addEventListener("pointerleave", () => { state.parts.tip.hidden = true; });
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".heads");
  const view = unpack(data);
  view.table = colours(view.scale);
  const state = root.headGrid ?? { listening: false };
  root.headGrid = state;
  state.send = setTriggerValue;
  const shape = view.shape.slice(0, 2).join();
  state.view = view;
  if (state.shape !== shape) {
    state.parts = build(root, view);
    state.shape = shape;
  }
  state.parts.grid.setAttribute("aria-label", view.words.grid);
  state.parts.buttons.forEach((button, i) => {
    const { largest, row, column } = paint(button.firstChild, view, i);
    const { words } = view;
    button.setAttribute("aria-label", `${words.layer} ${Number(button.dataset.layer) + 1}, `
      + `${words.head} ${Number(button.dataset.head) + 1}: ${words.largest} ${largest.toFixed(2)}, `
      + `${words.query} ${token(view.query, row, view)}, ${words.key} ${token(view.key, column, view)}`);
  });
  const pending = state.pending && Date.now() < state.pending.until ? state.pending.place : null;
  if (pending && String(pending) !== String(view.chosen)) mark(state, pending);
  else { state.pending = null; mark(state, view.chosen); }
  if (!state.listening) { listen(root, state); state.listening = true; }
  fit(root, state);
  if (!state.observer) {
    state.observer = new ResizeObserver(() => fit(root, state));
    state.observer.observe(root);
  }
  return () => { state.observer.disconnect(); state.observer = null; };
}
