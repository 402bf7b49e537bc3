// All heads of one attention: as maps, or drawn over the picture; a click shows one of them large.

import { cellUnder, nameAt, part, shortened, strongest, tipOver } from "./cells.js";
import { openTables } from "./data_table.js";
import { actButton, element, filled, penOf, pixelRatio, presentedHeight } from "./dom.js";
import { canvasOf, cellsOf, describe, headButton, labelHead, labelled, nameOf, paintHead, placeOf, weightName } from "./heads.js";
import { roving, tabStop } from "./keys.js";

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
  const heading = element("h2");
  const kinds = element("select", "", { "aria-label": words.kind });
  kinds.addEventListener("change", () => state.choose(Number(kinds.value), state.example));
  const which = element("span", "which");
  const bar = element("div", "head-bar", heading, kinds, which);
  const row = element("div", "words");
  const grid = element("div", "maps");
  const large = element("div", "large", { hidden: true });
  const axes = element("canvas", "axes", { "aria-hidden": "true" }); // each map says its tokens where one points
  const board = element("div", "map-board", grid, axes);
  const lead = actButton("lead", "", () => enlarge(state, heads.first));
  lead.append(element("span", "title"), element("canvas"));
  const room = element("div", "room", lead, board);
  const [around, said] = [element("span"), element("span")];
  const note = element("div", "note", around, said);
  const tip = tipOver([room, large], (event) => point(state, event));
  const box = element("div", "heads", bar, row, room, note, tip);
  const heads = { box, heading, kinds, which, row, room, board, grid, axes, lead, large, note, around, said, buttons: [], built: null };
  grid.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (lead.hidden) enlarge(state, Number(button.dataset.number));
    else {
      putFirst(state, Number(button.dataset.number));
      lead.scrollIntoView({ block: "nearest" });
    }
  });
  roving(grid, () => heads.buttons, { columnsOf: () => heads.columns });
  row.addEventListener("click", (event) => {
    const word = event.target.closest("button");
    if (word) { state.word = Number(word.dataset.word); showWords(state); state.ask(true); }
  });
  return heads;
}

// Beside the others, larger and with its words.
function putFirst(state, number) {
  const { heads } = state;
  heads.first = number;
  tabStop(heads.buttons, heads.buttons.find((button) => Number(button.dataset.number) === number) ?? heads.buttons[0]);
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
  const title = element("h3");
  const close = actButton("small", "✕", () => enlarge(state, null), words.back_to_heads);
  const numbers = actButton("small", words.table, () => openTables(heads.large, title.textContent, [largeTable(state)], words));
  const canvas = element("canvas", "", { role: "img" });
  heads.large.replaceChildren(element("div", "large-bar", title, numbers, close), canvas);
  heads.big = { title, canvas };
  close.focus();
}

// What is drawn of an attention: maps; of a captioner the patches for the chosen word, of others over pictures
// the only row there is.
function attentionOf({ view, weights, word, heads, data: { words } }) {
  const { shape, block, row_words: rows, key: keys, surface } = view;
  const row = surface === "words" ? Math.min(word, shape[2] - 1) : 0;
  const over = surface === "map" ? null : { row, first: 0, picture: heads.picture, gap: 1 };
  return { shape, weights, block, rows, keys, words, over };
}

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
    heads.kinds.replaceChildren(...view.kinds.map(({ label }, i) => (
      element("option", "", label, { value: String(i), selected: i === view.attention }))));
    heads.kinds.hidden = view.kinds.length < 2;
    heads.heading.hidden = view.kinds.length >= 2;
    heads.grid.textContent = "";
    heads.first = view.telling[0] ?? 0;
    heads.buttons = numbers.map((number) => {
      const button = headButton(element("span", "title", nameOf(attentionOf(state), number)));
      button.dataset.number = number;
      heads.grid.append(button);
      return button;
    });
  }
  heads.box.classList.toggle("none", view.surface === "none");
  const example = view.examples[view.example];
  heads.which.title = example ? `${example.picture ? words.picture : words.example} ${view.example + 1}: ${example.source || example.truth}` : "";
  heads.which.textContent = heads.which.title;
  const isSmall = state.data.compact; // what stands above it says what rows and columns are
  const notes = view.surface === "map" && !isSmall ? [view.axes] : [];
  if (hasFrames(view)) notes.push(words.truth_frames);
  const nHeads = view.shape[0] * view.shape[1];
  if (numbers.length < nHeads) notes.push(filled(words.of_heads, { n: numbers.length, all: nHeads }));
  if (view.surface === "picture") notes.push(view.cls ? words.cls : words.mean);
  if (view.n_attended < view.examples.length && !isSmall) {
    notes.push(filled(words.kept, { n: view.n_attended, all: view.examples.length }));
  }
  if (view.block > 1) notes.push(filled(words.blocks, { n: view.block }));
  if (view.frames.length < view.n_snapshots) {
    notes.push(filled(words.fewer, { n: view.frames.length, all: view.n_snapshots }));
  }
  const isMean = view.n_attended > 1 && view.frames.some(({ labels }) => labels.some(Boolean));
  heads.around.textContent = notes.map((one) => `${one} `).join("");
  heads.said.textContent = isMean && !isSmall ? filled(words.said, { n: view.n_attended }) : "";
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
    const canvas = canvasOf(button);
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
  const wide = Math.ceil(pen.measureText(nameOf({ shape: [9, 9], words: state.data.words }, 80)).width);
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
  return pen.measureText(shortened(token)).width + (gloss ? SPACE + pen.measureText(gloss).width : 0);
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
  const pen = penOf(heads.axes, heads.grid.offsetWidth, heads.grid.offsetHeight);
  pen.font = `${FONT}px ${state.font}`;
  pen.fillStyle = state.ink;
  heads.buttons.forEach((button, i) => {
    const canvas = canvasOf(button);
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
  const [own, gloss] = [shortened(token), glossOf(state, token)];
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

export function paintHeads(state, frame) {
  const { heads, view, data: { words } } = state;
  if (view.surface === "none" || !heads.size) return; // a picture may come before its room
  paintAxes(state);
  heads.buttons.forEach((button) => {
    const number = Number(button.dataset.number);
    paintCell(canvasOf(button), state, number, heads.size);
    const label = frame.labels[number] ?? "";
    labelHead(button, label, `${labelled(attentionOf(state), number, label)}. ${words.enlarge}`);
  });
  if (!heads.lead.hidden) paintLead(state, frame);
  if (heads.chosen !== null && heads.chosen !== undefined && !heads.large.hidden) paintLarge(state, frame);
}

// Draw a map, a pixel a cell, or a picture in so many pixels of the screen.
function paintCell(canvas, state, number, size) {
  const attention = attentionOf(state);
  const { table, maskedInk, view } = state;
  const { over } = attention;
  if (over) {
    const [width, height] = size.map((pixels) => Math.round(pixels * pixelRatio(canvas)));
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  }
  paintHead(canvas, cellsOf(attention, number), { over, table, maskedInk, top: over ? null : view.tops[number] });
}

const titleOf = (state, number, frame) => labelled(attentionOf(state), number, frame.labels[number]);

function paintLead(state, frame) {
  const { heads, data: { words } } = state;
  const [title, canvas] = heads.lead.children;
  const named = titleOf(state, heads.first, frame);
  if (title.textContent !== named) { title.textContent = named; heads.lead.setAttribute("aria-label", `${named}. ${words.enlarge}`); }
  heads.leadArea = paintWords(state, canvas, heads.first, heads.leadSize);
}

// A map with the words of its rows and columns, as large as its room lets it be; returns where its cells are.
function paintWords(state, canvas, number, [w, h]) {
  const { heads, view } = state;
  const pen = penOf(canvas, w, h);
  const [, , rows, columns] = view.shape;
  heads.small ??= document.createElement("canvas");
  paintCell(heads.small, state, number);
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
  const { values, sizes: [rows, columns] } = cellsOf(attentionOf(state), heads.chosen);
  const names = (tokens, n) => Array.from({ length: n }, (_none, i) => (view.surface === "map" ? nameAt(tokens, i, view.block) : i + 1));
  return {
    caption: `${heads.big.title.textContent}, ${weightIn(state)}`,
    head: ["", ...names(view.key, columns)],
    rows: names(view.row_words, rows).map((name, row) => [
      name, ...Array.from(part(values, row, columns), (weight) => (Number.isNaN(weight) ? words.masked : weight)),
    ]),
  };
}

// Where a head looks most.
function strongestOf(state, number) {
  const attention = attentionOf(state);
  const { values, sizes: [, columns] } = cellsOf(attention, number);
  const { value, row, column } = strongest(values, columns);
  return filled(attention.words.strongest, { place: placeOf(attention, row, column).join(", "), weight: value.toFixed(4) });
}

const weightIn = (state) => (state.isMixed ? state.data.words.mixed : weightName(attentionOf(state)));

function paintLarge(state, frame) {
  const { heads, view } = state;
  const { title, canvas } = heads.big;
  const number = heads.chosen;
  const named = titleOf(state, number, frame);
  if (title.textContent !== named) title.textContent = named;
  const told = `${named} ${state.player.shown} ${state.word} ${view.name}`;
  if (heads.big.told !== told) {
    heads.big.told = told;
    canvas.setAttribute("aria-label", `${named}. ${strongestOf(state, number)}`);
  }
  const room = [heads.large.clientWidth, heads.large.clientHeight - 34];
  if (view.surface === "map") {
    heads.area = paintWords(state, canvas, number, room.map((size) => Math.max(60, size)));
    return;
  }
  const side = Math.max(40, Math.min(...room) - 4);
  canvas.style.width = canvas.style.height = `${side}px`;
  paintCell(canvas, state, number, [side, side]);
  heads.area = { x: 0, y: 0, width: side, height: side };
}

// The cell under the pointer: exact at a snapshot, and said to be mixed between two.
function point(state, event) {
  const { heads, view } = state;
  const canvas = event.target.closest("canvas");
  if (!canvas || !view || !state.weights) return null;
  const [isLarge, isLead] = [heads.large.contains(canvas), heads.lead.contains(canvas)];
  const number = isLarge ? heads.chosen : isLead ? heads.first : Number(canvas.parentElement.dataset.number);
  const { sizes } = cellsOf(attentionOf(state), number);
  const cell = cellUnder(event, canvas, sizes, isLarge ? heads.area : isLead ? heads.leadArea : null);
  if (!cell) return null;
  const token = view.query[cell[0] * view.block];
  const gloss = glossOf(state, token);
  const more = gloss ? [`${token} = ${gloss}`] : [];
  return describe(attentionOf(state), number, ...cell, { more, name: weightIn(state) });
}
