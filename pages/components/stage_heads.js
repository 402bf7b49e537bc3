// All heads of one attention: as maps, or drawn over the picture; a click shows one of them large.

import { rgb } from "./colours.js";
import { openTables } from "./data_table.js";
import { element, headName, pixelRatio, placeTip, presentedHeight, zoomOf } from "./dom.js";

const GAP = 6;
const LINE = 16; // pixels of a line of words below a map
const NAME = 92; // pixels that a head's name takes in one line, in English
const NAMES = [ // what stands below a map, and from which width on: lines of the name, then of the role
  { title: 1, role: 1, least: NAME },
  { title: 2, role: 1, least: 74 },
  { title: 2, role: 0, least: 48 },
];
const NAMED = 2; // times the size that the words of what a head does are worth
const SMALLEST = 32; // pixels of a map, below which its heads scroll
const LARGEST = 300;
const ROW = 12; // pixels of a row below which its word cannot be read
const FONT = 12;
const MAX_AXIS = [104, 64]; // pixels of a word beside and above a map
const NARROW = 520; // pixels of a room below which the lead stands above the other heads
const TALL = 480; // pixels that a narrow room, which grows with what is in it, gives its maps
const LEAD_CELL = 40;
const [LEAD_GAP, LEAD_EDGE] = [6, 4]; // pixels below the title of the large map, and around its cells
const STRETCH = 1.6; // times as wide as it would be that a map with words may become
const VEIL = [230, 159, 0]; // over pictures, as on every page

// So many maps a row that they become largest, those with words below preferred: a layer takes whole rows,
// or a row takes whole layers. margin: pixels left of each row of maps, and above it.
// Pixels: named, of a head's name; line, of the height of a line; does, of what it does, if known.
export function arranged(layers, heads, width, height, ratio, [left, top] = [0, 0], [named, line, does] = [NAME, LINE, 0]) {
  let best = { cell: 0, worth: 0 };
  const inner = width - left;
  for (let columns = 1; columns <= heads * layers; columns += columns < heads ? 1 : heads) {
    const rows = columns > heads ? Math.ceil((layers * heads) / columns) : layers * Math.ceil(heads / columns);
    const wide = (inner - GAP * (columns - 1)) / columns;
    for (const { title, role, least } of NAMES) {
      const high = (height - GAP * (rows - 1)) / rows - top - line * (title + role);
      const cell = Math.floor(Math.min(wide, high / ratio, LARGEST));
      const worth = cell * (role ? NAMED : 1);
      const narrowest = Math.max((least * named) / NAME, role ? does : 0);
      if (wide >= narrowest && worth > best.worth) best = { columns, cell, title, role, wide, high, worth };
    }
  }
  if (best.cell < SMALLEST) {
    const columns = Math.max(1, Math.min(heads, Math.floor((inner + GAP) / (named + GAP))));
    best = { columns, cell: Math.floor(Math.min(named, inner)), title: 1, role: 1, wide: (inner - GAP * (columns - 1)) / columns };
  }
  return { ...best, slot: Math.floor(Math.min(best.wide, Math.max(best.cell, named + 22))) };
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
  const board = element("div", "map-board");
  board.append(grid, axes);
  const lead = element("button", "lead");
  lead.type = "button";
  lead.append(element("span", "title"), element("canvas"));
  lead.addEventListener("click", () => enlarge(state, heads.first));
  room.append(lead, board);
  const note = element("div", "note");
  const [around, said] = [element("span"), element("span")];
  note.append(around, said);
  box.append(bar, row, room, note, tip);
  const heads = { box, heading, kinds, which, row, room, board, grid, axes, lead, large, note, around, said, tip, buttons: [], built: null };
  grid.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (lead.hidden) enlarge(state, Number(button.dataset.number));
    else {
      putFirst(state, Number(button.dataset.number));
      lead.scrollIntoView({ block: "nearest" });
    }
  });
  grid.addEventListener("keydown", (event) => roam(state, event));
  room.addEventListener("pointermove", (event) => point(state, event));
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
  const by = { ArrowUp: -columns, ArrowDown: columns, ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const button = event.target.closest("button");
  if (!by || !button) return;
  event.preventDefault();
  const next = buttons[buttons.indexOf(button) + by];
  if (next) { stopAt(buttons, next); next.focus(); }
}

// Tab stops at one head; arrow keys move among them.
function stopAt(buttons, stop) {
  buttons.forEach((button) => { button.tabIndex = button === stop ? 0 : -1; });
}

// Beside the others, larger and with its words.
function putFirst(state, number) {
  const { heads } = state;
  heads.first = number;
  stopAt(heads.buttons, heads.buttons.find((button) => Number(button.dataset.number) === number) ?? heads.buttons[0]);
  heads.buttons.forEach((button) => button.setAttribute("aria-pressed", String(!heads.lead.hidden && Number(button.dataset.number) === number)));
  state.ask(true);
}

export function enlarge(state, number) {
  const { heads } = state;
  heads.chosen = number;
  heads.large.hidden = number === null;
  heads.grid.inert = number !== null;
  if (number !== null) buildLarge(state);
  else (heads.lead.hidden ? heads.buttons.find((button) => Number(button.dataset.number) === heads.before) : heads.lead)?.focus();
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
  close.setAttribute("aria-label", words.back_to_heads);
  close.title = words.back_to_heads;
  close.addEventListener("click", () => enlarge(state, null));
  const numbers = element("button", "small", words.table);
  numbers.type = "button";
  numbers.addEventListener("click", () => openTables(heads.large, title.textContent, [largeTable(state)], words));
  bar.append(title, numbers, close);
  const canvas = element("canvas");
  canvas.setAttribute("role", "img");
  heads.large.append(bar, canvas);
  heads.big = { title, canvas };
  close.focus({ preventScroll: true });
}

const nameOf = (state, number) => {
  const { view, data: { words } } = state;
  const [, heads] = view.shape;
  return headName(words, Math.floor(number / heads), number % heads);
};

// The heads that are shown, as numbers: on a small stage those that show most.
function shownOf({ data, view }) {
  if (data.compact && view.telling.length) return [...view.telling].sort((a, b) => a - b);
  return Array.from({ length: view.shape[0] * view.shape[1] }, (_none, number) => number);
}

export const glossOf = ({ isGlossed, view }, token) => (isGlossed && view.glosses?.words[token]) || "";

const hasFrames = ({ truth, block }) => truth?.length > 0 && block === 1;

// New snapshots came, or another kind or example.
export function fillHeads(state) {
  const { heads, view, data: { words } } = state;
  const numbers = shownOf(state);
  const key = JSON.stringify([view.attention, view.kinds.length, numbers, view.surface]);
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
    heads.first = view.telling[0] ?? 0;
    heads.buttons = numbers.map((number) => {
      const button = element("button", "head");
      button.type = "button";
      button.dataset.number = number;
      button.append(element("span", "title", nameOf(state, number)), element("canvas"), " ", element("span", "what"));
      heads.grid.append(button);
      return button;
    });
  }
  heads.box.classList.toggle("none", view.surface === "none");
  const example = view.examples[view.example];
  heads.which.textContent = example ? `${example.picture ? words.picture : words.example} ${view.example + 1}: ${example.source || example.truth}` : "";
  const notes = view.surface === "map" ? [view.axes] : [];
  if (hasFrames(view)) notes.push(words.truth_frames);
  const nHeads = view.shape[0] * view.shape[1];
  if (numbers.length < nHeads) notes.push(words.of_heads.replace("{n}", numbers.length).replace("{all}", nHeads));
  if (view.surface === "picture") notes.push(view.cls ? words.cls : words.mean);
  if (view.n_attended < view.examples.length && !state.data.compact) {
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
  const { heads, view, data: { bare } } = state;
  if (!view || view.surface === "none" || !heads.room.clientWidth) return;
  const [, , rows, columns] = view.shape;
  const [layers, across] = heads.buttons.length < view.shape[0] * view.shape[1] ? [1, heads.buttons.length] : view.shape;
  const isMap = view.surface === "map";
  const ratio = isMap ? Math.min(1.6, Math.max(0.5, rows / columns)) : 1;
  const isNarrow = heads.room.clientWidth < NARROW && !presentedHeight(heads.room);
  const [width, height] = [heads.room.clientWidth, isNarrow && !bare ? TALL : heads.room.clientHeight];
  const margin = isMap && !bare ? axisRoom(state) : [0, 0];
  const letters = nameRoom(state);
  let place = arranged(layers, across, width, height, ratio, margin, letters);
  const isReadable = Math.min(place.cell / columns, (place.cell * ratio) / rows) >= ROW;
  heads.lead.hidden = !isMap || isReadable || bare;
  heads.margin = isReadable ? margin : [0, 0];
  if (!heads.lead.hidden) {
    const high = height - margin[1] - letters[1] - LEAD_GAP - LEAD_EDGE;
    const cell = Math.min(LEAD_CELL, ((isNarrow ? width : width / 2) - margin[0]) / columns, isNarrow ? LEAD_CELL : high / rows);
    heads.leadSize = [Math.ceil(margin[0] + cell * columns) + LEAD_EDGE, Math.floor(margin[1] + cell * rows) + LEAD_EDGE];
    place = arranged(layers, across, width - (isNarrow ? 0 : heads.leadSize[0] + 14), height, ratio, [0, 0], letters);
  }
  heads.drawn = null;
  const stretched = heads.margin[0] ? Math.min(place.wide, STRETCH * place.cell) : place.cell; // for the words above it
  const tall = heads.margin[0] && place.high ? Math.min(place.high, STRETCH * place.cell * ratio) : place.cell * ratio;
  heads.size = [Math.floor(stretched), Math.floor(tall)];
  const [left, top] = heads.margin;
  heads.grid.style.padding = `${top}px 0 0 ${left}px`;
  heads.grid.style.rowGap = `${GAP + top}px`;
  heads.columns = place.columns;
  heads.grid.style.gridTemplateColumns = `repeat(${place.columns}, max-content)`;
  heads.grid.classList.toggle("named", Boolean(place.role));
  heads.said.style.visibility = place.role ? "" : "hidden"; // it keeps its room, on which the place depends
  heads.grid.style.setProperty("--slot", `${Math.max(place.slot, heads.size[0])}px`);
  heads.grid.style.setProperty("--line", `${letters[1]}px`);
  heads.grid.style.setProperty("--title", `${letters[1] * place.title}px`);
  heads.buttons.forEach((button) => {
    const canvas = button.children[1];
    canvas.style.width = `${heads.size[0]}px`;
    canvas.style.height = `${heads.size[1]}px`;
  });
  putFirst(state, heads.first);
}

// Pixels that the name of a head takes in one line, that a line is high, and, where a reader spaces letters,
// that the longest of what heads do takes.
function nameRoom(state) {
  const { heads, view } = state;
  const style = getComputedStyle(heads.buttons[0]?.firstChild ?? heads.grid);
  const pen = heads.axes.getContext("2d");
  pen.save();
  pen.font = `600 ${FONT}px ${state.font}`;
  const isSpaced = parseFloat(style.letterSpacing) > 0 || parseFloat(style.wordSpacing) > 0;
  if (isSpaced) Object.assign(pen, { letterSpacing: style.letterSpacing, wordSpacing: style.wordSpacing });
  const wide = Math.ceil(pen.measureText(headName(state.data.words, 8, 8)).width);
  const labels = isSpaced ? new Set(view.frames.flatMap((frame) => frame.labels)) : [];
  const does = Math.max(0, ...[...labels].map((label) => Math.ceil(pen.measureText(label).width)));
  pen.restore();
  const line = Math.max(LINE, Math.ceil(parseFloat(style.lineHeight)) || LINE);
  return [wide > NAME + 4 ? wide + 2 : NAME, line, does];
}

// Pixels that the words beside and above a map need.
function axisRoom(state) {
  const { heads, view } = state;
  const pen = heads.axes.getContext("2d");
  pen.font = `${FONT}px ${state.font}`;
  return [view.query, view.key].map((tokens, i) => Math.ceil(Math.min(MAX_AXIS[i], Math.max(12, ...tokens.map((token) => widthOf(pen, state, token))))) + 7);
}

const SPACE = 4; // pixels between a token and its gloss

function widthOf(pen, state, token) {
  const gloss = glossOf(state, token);
  return pen.measureText(shorten(token)).width + (gloss ? SPACE + pen.measureText(gloss).width : 0);
}

// The words beside each row of maps and above each map; drawn when sizes, colours or words change alone.
function paintAxes(state) {
  const { heads, view } = state;
  const [left] = heads.margin;
  heads.axes.hidden = !left;
  const key = [state.ink, state.font, ...heads.size, ...heads.margin, view.name, state.isGlossed, heads.columns, heads.buttons.length].join(" ");
  if (!left || heads.drawn === key) return;
  heads.drawn = key;
  const [, , rows, columns] = view.shape;
  const ratio = pixelRatio(heads.axes);
  const [width, height] = [heads.grid.offsetWidth, heads.grid.offsetHeight];
  Object.assign(heads.axes.style, { width: `${width}px`, height: `${height}px` });
  [heads.axes.width, heads.axes.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const pen = heads.axes.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = `${FONT}px ${state.font}`;
  pen.fillStyle = state.ink;
  heads.buttons.forEach((button, i) => {
    const canvas = button.children[1];
    const area = { x: canvas.offsetLeft, y: canvas.offsetTop, width: heads.size[0], height: heads.size[1] };
    writeAxes(pen, state, area, { rows, columns, most: heads.margin, hasRows: i % heads.columns === 0 });
    frameTruth(pen, view, area);
  });
}

// Frame the cells where the true source of each token is.
function frameTruth(pen, view, area) {
  if (!hasFrames(view)) return;
  const [wide, high] = [area.width / view.shape[3], area.height / view.shape[2]];
  pen.strokeStyle = view.truth_ink;
  pen.lineWidth = 1.5;
  view.truth.forEach(([row, column]) => pen.strokeRect(area.x + column * wide + 1, area.y + row * high + 1, wide - 2, high - 2));
}

// Write a token and, fainter, its gloss in so many pixels, which end or begin here.
function writeToken(pen, state, token, x, y, most) {
  const [own, gloss] = [shorten(token), glossOf(state, token)];
  if (!gloss) { pen.fillText(own, x, y, most); return; }
  const [wide, room] = [pen.measureText(own).width, pen.measureText(gloss).width];
  const beside = Math.max(12, Math.min(room, most - wide - SPACE));
  const isEnd = pen.textAlign === "right";
  pen.fillText(own, isEnd ? x - beside - SPACE : x, y);
  pen.globalAlpha = 0.7;
  pen.fillText(gloss, isEnd ? x : x + wide + SPACE, y, beside);
  pen.globalAlpha = 1;
}

// Write the tokens of rows left of an area, and those of columns above it, as many as have room.
function writeAxes(pen, state, area, { rows, columns, most, hasRows = true }) {
  const { view } = state;
  const each = (tokens, count, size, draw) => {
    const every = Math.max(1, Math.ceil((ROW - 0.5) / size));
    for (let i = 0; i < count; i += every) draw(tokens[i * view.block] ?? "", (i + 0.5) * size);
  };
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  if (hasRows) each(view.query, rows, area.height / rows, (token, at) => writeToken(pen, state, token, area.x - 5, area.y + at, most[0] - 7));
  pen.textAlign = "left";
  each(view.key, columns, area.width / columns, (token, at) => {
    pen.save();
    pen.translate(area.x + at, area.y - 4);
    pen.rotate(-Math.PI / 2);
    writeToken(pen, state, token, 0, 0, most[1] - 7);
    pen.restore();
  });
}

export function paintHeads(state, weights, frame) {
  const { heads, view, data: { words } } = state;
  if (view.surface === "none" || !heads.size) return; // a picture may come before its room
  const [, , rows, columns] = view.shape;
  const cells = rows * columns;
  paintAxes(state);
  heads.buttons.forEach((button) => {
    const number = Number(button.dataset.number);
    const own = weights.subarray(number * cells, (number + 1) * cells);
    const canvas = button.children[1];
    if (view.surface === "map") paintMap(canvas, own, view, state, number);
    else paintVeil(canvas, rowOf(own, state), state, heads.size);
    const label = frame.labels[number] ?? "";
    if (button.lastChild.textContent !== label) {
      button.lastChild.textContent = label;
      button.title = label;
      button.setAttribute("aria-label", `${nameOf(state, number)}${label ? `: ${label}` : ""}. ${words.enlarge}`);
    }
  });
  if (!heads.lead.hidden) paintLead(state, weights, frame);
  if (heads.chosen !== null && heads.chosen !== undefined && !heads.large.hidden) paintLarge(state, weights, frame);
}

// Of a captioner the patches for the chosen word, of others the only row there is.
function rowOf(own, state) {
  const { view } = state;
  const n = view.shape[3];
  const row = view.surface === "words" ? Math.min(state.word, view.shape[2] - 1) : 0;
  return own.subarray(row * n, (row + 1) * n);
}

function paintMap(canvas, own, view, state, number) {
  const [, , rows, columns] = view.shape;
  if (canvas.width !== columns || canvas.height !== rows) { canvas.width = columns; canvas.height = rows; }
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const shades = 255 / view.tops[number];
  for (let i = 0; i < own.length; i += 1) {
    const weight = own[i];
    pixels[i] = weight !== weight ? state.maskedInk : state.table[Math.max(0, Math.min(255, Math.round(weight * shades)))];
  }
  pen.putImageData(image, 0, 0);
}

function paintVeil(canvas, row, state, [width, height]) {
  const { heads, view } = state;
  const ratio = pixelRatio(canvas);
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

const titleOf = (state, number, frame) => {
  const label = frame.labels[number] ?? "";
  return `${nameOf(state, number)}${label ? `: ${label}` : ""}`;
};

function paintLead(state, weights, frame) {
  const { heads, view, data: { words } } = state;
  const [title, canvas] = heads.lead.children;
  const named = titleOf(state, heads.first, frame);
  if (title.textContent !== named) { title.textContent = named; heads.lead.setAttribute("aria-label", `${named}. ${words.enlarge}`); }
  const cells = view.shape[2] * view.shape[3];
  heads.leadArea = paintWords(state, canvas, weights.subarray(heads.first * cells, (heads.first + 1) * cells), heads.leadSize);
}

// A map with the words of its rows and columns, as large as its room lets it be; returns where its cells are.
function paintWords(state, canvas, own, [w, h]) {
  const { heads, view } = state;
  const ratio = pixelRatio(canvas);
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
  paintMap(heads.small, own, view, state, heads.chosen);
  const most = axisRoom(state);
  const [left, top] = most;
  const cell = Math.min((w - left - 4) / columns, (h - top - 4) / rows, 64);
  const area = { x: left, y: top, width: cell * columns, height: cell * rows };
  pen.font = `${FONT}px ${state.font}`;
  pen.imageSmoothingEnabled = false;
  pen.drawImage(heads.small, area.x, area.y, area.width, area.height);
  pen.fillStyle = state.ink;
  writeAxes(pen, state, area, { rows, columns, most });
  pen.strokeStyle = state.line;
  pen.strokeRect(area.x + 0.5, area.y + 0.5, area.width - 1, area.height - 1);
  frameTruth(pen, view, area);
  return area;
}

// The weights of the head that is shown large: of tokens, or of the patches of a picture.
function largeTable(state) {
  const { heads, view, data: { words } } = state;
  const isMap = view.surface === "map";
  const [rows, columns] = isMap ? view.shape.slice(2) : [view.side, view.side];
  const cells = view.shape[2] * view.shape[3];
  const own = state.weights.subarray(heads.chosen * cells, (heads.chosen + 1) * cells);
  const shown = isMap ? own : rowOf(own, state);
  const names = (tokens, n) => Array.from({ length: n }, (_none, i) => (isMap ? tokenAt(view, tokens, i) : i + 1));
  return {
    caption: `${heads.big.title.textContent}, ${weightName(state)}`,
    head: ["", ...names(view.key, columns)],
    rows: names(view.row_words, rows).map((name, row) => [
      name, ...Array.from(shown.subarray(row * columns, (row + 1) * columns), (weight) => (Number.isNaN(weight) ? words.masked : weight)),
    ]),
  };
}

// Where the head that is shown large looks most.
function strongestOf(state, own) {
  const { view, data: { words } } = state;
  const isMap = view.surface === "map";
  const shown = isMap ? own : rowOf(own, state);
  const columns = isMap ? view.shape[3] : view.side;
  let best = 0;
  for (let i = 1; i < shown.length; i += 1) if (!(shown[best] >= shown[i]) && !Number.isNaN(shown[i])) best = i;
  const [row, column] = [Math.floor(best / columns), best % columns];
  const place = isMap ? `${tokenAt(view, view.row_words, row)}, ${words.key} ${tokenAt(view, view.key, column)}` : `${words.patch} ${row + 1},${column + 1}`;
  return words.strongest.replace("{place}", place).replace("{weight}", shown[best].toFixed(4));
}

// Of tokens that were taken together the first and the last.
function tokenAt(view, tokens, i) {
  const many = tokens.slice(i * view.block, (i + 1) * view.block);
  return many.length > 1 ? `${many[0]} … ${many[many.length - 1]}` : many[0] ?? "";
}

function weightName({ isMixed, view, data: { words } }) {
  return isMixed ? words.mixed : view.block > 1 ? words.largest : words.weight;
}

function paintLarge(state, weights, frame) {
  const { heads, view } = state;
  const { title, canvas } = heads.big;
  const number = heads.chosen;
  const cells = view.shape[2] * view.shape[3];
  const own = weights.subarray(number * cells, (number + 1) * cells);
  const named = titleOf(state, number, frame);
  if (title.textContent !== named) title.textContent = named;
  const told = `${named} ${state.shown} ${state.word} ${view.name}`;
  if (heads.big.told !== told) {
    heads.big.told = told;
    canvas.setAttribute("aria-label", `${named}. ${strongestOf(state, own)}`);
  }
  const room = [heads.large.clientWidth, heads.large.clientHeight - 34];
  if (view.surface === "map") {
    heads.area = paintWords(state, canvas, own, room.map((size) => Math.max(60, size)));
    return;
  }
  const side = Math.max(40, Math.min(...room) - 4);
  canvas.style.width = canvas.style.height = `${side}px`;
  paintVeil(canvas, rowOf(own, state), state, [side, side]);
  heads.area = { x: 0, y: 0, width: side, height: side };
}

// The cell under the pointer: exact at a snapshot, and said to be mixed between two.
function point(state, event) {
  const { heads, view, data: { words } } = state;
  const { tip } = heads;
  const canvas = event.target.closest("canvas");
  tip.hidden = !canvas || event.pointerType === "touch" || !view || !state.weights;
  if (tip.hidden) return;
  const [isLarge, isLead] = [heads.large.contains(canvas), heads.lead.contains(canvas)];
  const number = isLarge ? heads.chosen : isLead ? heads.first : Number(canvas.parentElement.dataset.number);
  const [box, zoom] = [canvas.getBoundingClientRect(), zoomOf(canvas)];
  const area = isLarge ? heads.area : isLead ? heads.leadArea : { x: 0, y: 0, width: box.width / zoom, height: box.height / zoom };
  const [acrossShare, downShare] = [((event.clientX - box.left) / zoom - area.x) / area.width, ((event.clientY - box.top) / zoom - area.y) / area.height];
  if (acrossShare < 0 || downShare < 0 || acrossShare >= 1 || downShare >= 1) { tip.hidden = true; return; }
  const isMap = view.surface === "map";
  const [rows, columns] = isMap ? view.shape.slice(2) : [view.side, view.side];
  const [row, column] = [Math.floor(downShare * rows), Math.floor(acrossShare * columns)];
  const cells = view.shape[2] * view.shape[3];
  const own = state.weights.subarray(number * cells, (number + 1) * cells);
  const weight = isMap ? own[row * columns + column] : rowOf(own, state)[row * columns + column];
  const name = weightName(state);
  const value = Number.isNaN(weight) ? `0 (${words.masked})` : weight.toFixed(4);
  const glossed = (at) => { const gloss = glossOf(state, at); return gloss ? [`${at} = ${gloss}`] : []; };
  const place = isMap
    ? [tokenAt(view, view.row_words, row), ...glossed(view.query[row * view.block]), `${words.key} ${tokenAt(view, view.key, column)}`]
    : [`${words.patch} ${row + 1},${column + 1}`];
  tip.textContent = [nameOf(state, number), ...place, `${name} ${value}`].join("\n");
  placeTip(tip, event.clientX, event.clientY);
}

export const abgr = (hex) => { const [r, g, b] = rgb(hex); return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0; };
