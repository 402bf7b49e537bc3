// All heads of one attention: as maps, or drawn over the picture; a click shows one of them large.

import { rgb } from "./colours.js";
import { element } from "./dom.js";

const GAP = 6;
const WORDS = 27; // pixels below a map: two lines of what the head does
const TITLE = 14;
const WHOLE_NAME = 80; // pixels of a map from which its name stands in full
const MIN_ROW = 9; // pixels of a row below which its word cannot be read
const AXIS_FONT = 11;
const MAX_AXIS = 62; // pixels of a word beside the first map
const VEIL = [230, 159, 0]; // over pictures, as on every page
const MIN_NAMED = 74; // pixels of a map below which words have no room
const NAMED = 1.4; // times the size that words are worth

// So many maps a row that they become largest, those with words below a little preferred: a layer takes
// whole rows, or a row takes whole layers.
export function arranged(layers, heads, width, height, ratio) {
  let best = { columns: heads, cell: 0, named: false, worth: 0 };
  for (let columns = 1; columns <= heads * layers; columns += columns < heads ? 1 : heads) {
    const rows = columns > heads ? Math.ceil((layers * heads) / columns) : layers * Math.ceil(heads / columns);
    const wide = (width - GAP * (columns - 1)) / columns;
    for (const named of [true, false]) {
      const high = (height - GAP * (rows - 1)) / rows - TITLE - (named ? WORDS : 2);
      const cell = Math.floor(Math.min(wide, high / ratio, 300));
      const worth = named ? cell * NAMED : cell;
      if ((!named || cell >= MIN_NAMED) && worth > best.worth) best = { columns, cell, named, worth };
    }
  }
  return { ...best, cell: Math.max(16, best.cell) };
}

export function buildHeads(state) {
  const { words } = state.data;
  const box = element("div", "heads");
  const bar = element("div", "head-bar");
  const heading = element("h2");
  const kinds = element("select");
  kinds.setAttribute("aria-label", words.kind);
  kinds.addEventListener("change", () => state.choose(Number(kinds.value), state.example));
  const which = element("span", "which");
  bar.append(heading, kinds, which);
  const row = element("div", "words");
  const room = element("div", "room");
  const grid = element("div", "maps");
  const large = element("div", "large");
  large.hidden = true;
  const tip = element("div", "tip");
  tip.hidden = true;
  const axes = element("canvas", "axes");
  axes.setAttribute("aria-hidden", "true"); // each map says its tokens where one points
  room.append(grid, axes);
  const note = element("div", "note");
  const [around, said] = [element("span"), element("span")];
  note.append(around, said);
  box.append(bar, row, room, note, tip);
  const heads = { box, heading, kinds, which, row, room, grid, axes, large, note, around, said, tip, buttons: [], built: null };
  grid.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) enlarge(state, Number(button.dataset.number));
  });
  grid.addEventListener("keydown", (event) => roam(state, event));
  grid.addEventListener("pointermove", (event) => point(state, event));
  large.addEventListener("pointermove", (event) => point(state, event));
  [box, large].forEach((part) => part.addEventListener("pointerleave", () => { tip.hidden = true; }));
  row.addEventListener("click", (event) => {
    const word = event.target.closest("button");
    if (word) { state.word = Number(word.dataset.word); showWords(state); state.ask(true); }
  });
  return heads;
}

function roam(state, event) {
  const { columns, buttons } = state.heads;
  const by = { ArrowUp: -columns, ArrowDown: columns }[event.key];
  const button = event.target.closest("button");
  if (!by || !button) return;
  event.preventDefault();
  buttons[Number(button.dataset.number) + by]?.focus();
}

export function enlarge(state, number) {
  const { heads } = state;
  heads.chosen = number;
  heads.large.hidden = number === null;
  heads.grid.inert = number !== null;
  if (number !== null) buildLarge(state);
  else heads.buttons[heads.before ?? 0]?.focus();
  heads.before = number;
  state.ask(true);
}

function buildLarge(state) {
  const { heads, view, data: { words } } = state;
  heads.large.textContent = "";
  const bar = element("div", "large-bar");
  const title = element("h3");
  const close = element("button", "small", "✕");
  close.type = "button";
  close.setAttribute("aria-label", words.close);
  close.title = words.close;
  close.addEventListener("click", () => enlarge(state, null));
  bar.append(title, close);
  const canvas = element("canvas");
  canvas.setAttribute("role", "img");
  heads.large.append(bar, canvas);
  heads.big = { title, canvas };
  close.focus({ preventScroll: true });
}

const nameOf = (state, number) => {
  const { view, data: { words } } = state;
  const [, heads] = view.shape;
  return `${words.layer} ${Math.floor(number / heads) + 1}, ${words.head.toLowerCase()} ${(number % heads) + 1}`;
};

const shortNameOf = (state, number) => {
  const { view, data: { words } } = state;
  const [, heads] = view.shape;
  return words.short.replace("{layer}", Math.floor(number / heads) + 1).replace("{head}", (number % heads) + 1);
};

// New snapshots came, or another kind or example.
export function fillHeads(state) {
  const { heads, view, data: { words } } = state;
  const [layers, across] = view.shape;
  const key = JSON.stringify([view.attention, view.kinds.length, layers, across, view.surface]);
  if (heads.built !== key) {
    heads.built = key;
    heads.chosen = null;
    heads.large.hidden = true;
    heads.grid.inert = false;
    heads.heading.textContent = view.kinds[view.attention]?.label ?? words.heads;
    heads.box.setAttribute("aria-busy", "false");
    heads.kinds.textContent = "";
    view.kinds.forEach(({ label }, i) => {
      const option = element("option", "", label);
      option.value = i;
      option.selected = i === view.attention;
      heads.kinds.append(option);
    });
    heads.kinds.hidden = view.kinds.length < 2;
    heads.heading.hidden = view.kinds.length >= 2;
    heads.grid.textContent = "";
    heads.buttons = Array.from({ length: layers * across }, (_none, number) => {
      const button = element("button", "head");
      button.type = "button";
      button.dataset.number = number;
      button.append(element("span", "title", nameOf(state, number)), element("canvas"), element("span", "what"));
      heads.grid.append(button);
      return button;
    });
  }
  heads.box.classList.toggle("none", view.surface === "none");
  const example = view.examples[view.example];
  heads.which.textContent = example ? `${example.picture ? words.picture : words.example} ${view.example + 1}: ${example.source || example.truth}` : "";
  const notes = view.surface === "map" ? [view.axes] : [];
  if (view.surface === "picture") notes.push(view.cls ? words.cls : words.mean);
  if (view.n_attended < view.examples.length) {
    notes.push(words.kept.replace("{n}", view.n_attended).replace("{all}", view.examples.length));
  }
  if (view.block > 1) notes.push(words.blocks.replaceAll("{n}", view.block));
  if (view.frames.length < view.n_snapshots) {
    notes.push(words.fewer.replace("{n}", view.frames.length).replace("{all}", view.n_snapshots));
  }
  const isMean = view.n_attended > 1 && view.frames.some(({ labels }) => labels.some(Boolean));
  heads.around.textContent = notes.map((one) => `${one} `).join("");
  heads.said.textContent = isMean ? words.said.replace("{n}", view.n_attended) : "";
  heads.note.hidden = view.surface === "none" || !heads.note.textContent;
  state.word = Math.min(state.word ?? 0, Math.max(0, view.query.length - 1));
  showWords(state);
  heads.picture = null;
  if (view.surface === "picture" || view.surface === "words") loadPicture(state);
  fitHeads(state);
}

function showWords(state) {
  const { heads, view, data: { words } } = state;
  heads.row.hidden = view.surface !== "words";
  if (heads.row.hidden) return;
  heads.row.textContent = `${words.word} `;
  view.query.forEach((token, i) => {
    const button = element("button", "small", token);
    button.type = "button";
    button.dataset.word = i;
    button.setAttribute("aria-pressed", String(i === state.word));
    heads.row.append(button);
  });
}

function loadPicture(state) {
  const { heads, view } = state;
  const image = new Image();
  image.onload = () => { if (state.view === view) { heads.picture = image; state.ask(true); } };
  image.src = view.examples[view.example].picture;
}

export function fitHeads(state) {
  const { heads, view } = state;
  if (!view || view.surface === "none" || !heads.room.clientWidth) return;
  const [layers, across, rows, columns] = view.shape;
  const isMap = view.surface === "map";
  const ratio = isMap ? Math.min(1.6, Math.max(0.5, rows / columns)) : 1;
  const [width, height] = [heads.room.clientWidth, heads.room.clientHeight];
  let place = arranged(layers, across, width, height, ratio);
  let margin = [0, 0];
  if (isMap) {
    const wanted = axisRoom(state);
    const beside = arranged(layers, across, width - wanted[0], height - wanted[1], ratio);
    if (Math.min(beside.cell / columns, (beside.cell * ratio) / rows) >= MIN_ROW) [place, margin] = [beside, wanted];
  }
  heads.margin = margin;
  heads.drawn = null;
  heads.grid.style.padding = `${margin[1]}px 0 0 ${margin[0]}px`;
  heads.columns = place.columns;
  heads.grid.style.gridTemplateColumns = `repeat(${place.columns}, max-content)`;
  heads.grid.classList.toggle("named", place.named);
  heads.said.style.visibility = place.named ? "" : "hidden"; // it keeps its room, on which the place depends
  heads.grid.style.setProperty("--cell", `${place.cell}px`);
  heads.size = [place.cell, Math.round(place.cell * ratio)];
  heads.buttons.forEach((button) => {
    const canvas = button.children[1];
    canvas.style.width = `${heads.size[0]}px`;
    canvas.style.height = `${heads.size[1]}px`;
    const name = place.cell < WHOLE_NAME ? shortNameOf(state, Number(button.dataset.number)) : nameOf(state, Number(button.dataset.number));
    button.firstChild.textContent = name;
  });
}

// Pixels that the words beside and above the first map need.
function axisRoom(state) {
  const { heads, view } = state;
  const pen = heads.axes.getContext("2d");
  pen.font = `${AXIS_FONT}px ${state.font}`;
  return [view.query, view.key].map((tokens) => Math.ceil(Math.min(MAX_AXIS, Math.max(12, ...tokens.map((token) => pen.measureText(shorten(token)).width)))) + 5);
}

// The words of rows and columns at the first map; drawn when its size, colours or words change alone.
function paintAxes(state) {
  const { heads, view } = state;
  const [left, top] = heads.margin;
  heads.axes.hidden = !left;
  const key = [state.ink, state.font, ...heads.size, left, top, view.name].join(" ");
  if (!left || heads.drawn === key) return;
  heads.drawn = key;
  const [, , rows, columns] = view.shape;
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [left + heads.size[0], top + heads.size[1]];
  Object.assign(heads.axes.style, { width: `${width}px`, height: `${height}px` });
  [heads.axes.width, heads.axes.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const pen = heads.axes.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = `${Math.min(AXIS_FONT, Math.floor(Math.min(heads.size[0] / columns, heads.size[1] / rows)))}px ${state.font}`;
  pen.fillStyle = state.ink;
  writeAxes(pen, view, { x: left, y: top, width: heads.size[0], height: heads.size[1] }, { rows, columns, most: MAX_AXIS });
}

// Write the tokens of rows left of an area, and those of columns above it, as many as have room.
function writeAxes(pen, view, area, { rows, columns, most }) {
  const each = (tokens, count, size, draw) => {
    const every = Math.max(1, Math.ceil(MIN_ROW / size));
    for (let i = 0; i < count; i += every) draw(shorten(tokens[i * view.block] ?? ""), (i + 0.5) * size);
  };
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  each(view.query, rows, area.height / rows, (token, at) => pen.fillText(token, area.x - 5, area.y + at, most ?? area.x));
  pen.textAlign = "left";
  each(view.key, columns, area.width / columns, (token, at) => {
    pen.save();
    pen.translate(area.x + at, area.y - 5);
    pen.rotate(-Math.PI / 2);
    pen.fillText(token, 0, 0, most ?? area.y);
    pen.restore();
  });
}

export function paintHeads(state, weights, frame) {
  const { heads, view, data: { words } } = state;
  if (view.surface === "none" || !heads.size) return; // a picture may come before its room
  const [, , rows, columns] = view.shape;
  const cells = rows * columns;
  paintAxes(state);
  heads.buttons.forEach((button, number) => {
    const own = weights.subarray(number * cells, (number + 1) * cells);
    const canvas = button.children[1];
    if (view.surface === "map") paintMap(canvas, own, view, state);
    else paintVeil(canvas, rowOf(own, state), state, heads.size);
    const label = frame.labels[number] ?? "";
    if (button.lastChild.textContent !== label) {
      button.lastChild.textContent = label;
      button.title = label;
      button.setAttribute("aria-label", `${nameOf(state, number)}${label ? `: ${label}` : ""}. ${words.enlarge}`);
    }
  });
  if (heads.chosen !== null && heads.chosen !== undefined && !heads.large.hidden) paintLarge(state, weights, frame);
}

// Of a captioner the patches for the chosen word, of others the only row there is.
function rowOf(own, state) {
  const { view } = state;
  const n = view.shape[3];
  const row = view.surface === "words" ? Math.min(state.word, view.shape[2] - 1) : 0;
  return own.subarray(row * n, (row + 1) * n);
}

function paintMap(canvas, own, view, state) {
  const [, , rows, columns] = view.shape;
  if (canvas.width !== columns || canvas.height !== rows) { canvas.width = columns; canvas.height = rows; }
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < own.length; i += 1) {
    const weight = own[i];
    pixels[i] = weight !== weight ? state.maskedInk : state.table[Math.max(0, Math.min(255, Math.round(weight * 255)))];
  }
  pen.putImageData(image, 0, 0);
}

function paintVeil(canvas, row, state, [width, height]) {
  const { heads, view } = state;
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.clearRect(0, 0, w, h);
  if (heads.picture) pen.drawImage(heads.picture, 0, 0, w, h);
  let top = 0;
  for (let i = 0; i < row.length; i += 1) if (row[i] > top) top = row[i];
  const side = view.side;
  for (let i = 0; i < row.length; i += 1) {
    const share = top > 0 ? row[i] / top : 0;
    pen.fillStyle = `rgba(${VEIL}, ${(0.78 * share).toFixed(3)})`;
    const [x, y] = [(i % side) * (w / side), Math.floor(i / side) * (h / side)];
    pen.fillRect(x, y, w / side - 1, h / side - 1);
  }
}

const shorten = (token) => {
  const seen = token.trim() ? token.replace(/^ /, "␣") : "␣";
  return seen.length > 12 ? `${seen.slice(0, 11)}…` : seen;
};

function paintLarge(state, weights, frame) {
  const { heads, view, data: { words } } = state;
  const { title, canvas } = heads.big;
  const number = heads.chosen;
  const cells = view.shape[2] * view.shape[3];
  const own = weights.subarray(number * cells, (number + 1) * cells);
  const label = frame.labels[number] ?? "";
  const named = `${nameOf(state, number)}${label ? `: ${label}` : ""}`;
  if (title.textContent !== named) { title.textContent = named; canvas.setAttribute("aria-label", named); }
  const room = [heads.large.clientWidth, heads.large.clientHeight - 34];
  if (view.surface !== "map") {
    const side = Math.max(40, Math.min(...room) - 4);
    canvas.style.width = canvas.style.height = `${side}px`;
    paintVeil(canvas, rowOf(own, state), state, [side, side]);
    heads.area = { x: 0, y: 0, width: side, height: side };
    return;
  }
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(60, room[0]), Math.max(60, room[1])];
  canvas.style.width = `${w}px`;
  canvas.style.height = `${h}px`;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, w, h);
  const [, , rows, columns] = view.shape;
  heads.small ??= document.createElement("canvas");
  paintMap(heads.small, own, view, state);
  pen.font = `12px ${state.font}`;
  const widest = (tokens) => Math.max(20, ...tokens.map((token) => pen.measureText(shorten(token)).width));
  const [left, top] = [widest(view.query) + 8, Math.min(90, widest(view.key)) + 8];
  const cell = Math.min((w - left - 4) / columns, (h - top - 4) / rows, 64);
  const area = { x: left, y: top, width: cell * columns, height: cell * rows };
  heads.area = area;
  pen.imageSmoothingEnabled = false;
  pen.drawImage(heads.small, area.x, area.y, area.width, area.height);
  pen.fillStyle = state.ink;
  writeAxes(pen, view, area, { rows, columns });
}

// The cell under the pointer: exact at a snapshot, and said to be mixed between two.
function point(state, event) {
  const { heads, view, data: { words } } = state;
  const { tip } = heads;
  const canvas = event.target.closest("canvas");
  tip.hidden = !canvas || event.pointerType === "touch" || !view || !state.weights;
  if (tip.hidden) return;
  const isLarge = heads.large.contains(canvas);
  const number = isLarge ? heads.chosen : Number(canvas.parentElement.dataset.number);
  const box = canvas.getBoundingClientRect();
  const area = isLarge ? heads.area : { x: 0, y: 0, width: box.width, height: box.height };
  const [acrossShare, downShare] = [(event.clientX - box.left - area.x) / area.width, (event.clientY - box.top - area.y) / area.height];
  if (acrossShare < 0 || downShare < 0 || acrossShare >= 1 || downShare >= 1) { tip.hidden = true; return; }
  const isMap = view.surface === "map";
  const [rows, columns] = isMap ? view.shape.slice(2) : [view.side, view.side];
  const [row, column] = [Math.floor(downShare * rows), Math.floor(acrossShare * columns)];
  const cells = view.shape[2] * view.shape[3];
  const own = state.weights.subarray(number * cells, (number + 1) * cells);
  const weight = isMap ? own[row * columns + column] : rowOf(own, state)[row * columns + column];
  const token = (tokens, i) => {
    const many = tokens.slice(i * view.block, (i + 1) * view.block);
    return many.length > 1 ? `${many[0]} … ${many[many.length - 1]}` : many[0] ?? "";
  };
  const name = state.isMixed ? words.mixed : view.block > 1 ? words.largest : words.weight;
  const value = Number.isNaN(weight) ? `0 (${words.masked})` : weight.toFixed(4);
  const place = isMap
    ? [token(view.row_words, row), `${words.key} ${token(view.key, column)}`]
    : [`${words.patch} ${row + 1},${column + 1}`];
  tip.textContent = [nameOf(state, number), ...place, `${name} ${value}`].join("\n");
  state.placeTip(tip, event.clientX, event.clientY);
}

export const abgr = (hex) => { const [r, g, b] = rgb(hex); return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0; };
