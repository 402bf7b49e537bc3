// A board, what a model reads on it as bars, what it sees of the strokes and where it looks, head by head and
// through all layers, at every saved step of its training. A press on a bar says what was meant.

import { paintVeil, part, pictured, strongest } from "./cells.js";
import { actButton, bytes, dress, element, filled, label, named, slider, whole } from "./dom.js";
import { DrawingBoard } from "./drawing_board.js";
import { roving, tabStop } from "./keys.js";

const PAUSE = 150; // milliseconds between two looks at a stroke that is still being drawn
const REST = 700; // milliseconds after the last stroke, when the address takes up the drawing
const ZOOM = 8; // pixels of a canvas to one of the picture, so that the edges of patches are sharp

export const highest = (shares) => shares.indexOf(Math.max(...shares));
export const percent = (share) => `${Math.round(100 * share)}%`;

// Where the thumb of a slider of n stops stands at stop i, as CSS: half a thumb is left at each end.
export const stopAt = (i, n) => `calc(8px + (100% - 16px) * ${n > 1 ? i / (n - 1) : 1})`;

// One of the maps (times, maps, patches), in bytes: each patch as a share of the largest of its map.
export function mapOf(maps, stop, index) {
  const { values, n, patches } = maps;
  return part(values, stop * n + index, patches);
}

class Lab {
  constructor(root, data) {
    this.words = data.words;
    this.note = data.note;
    [this.number] = data.shown;
    this.reading = null;
    this.sentAt = 0;
    root.textContent = "";
    this.board = new DrawingBoard(data.side, data.words, {
      onStroke: () => this.#tell(),
      onMove: () => this.#tellMeanwhile(),
    });
    this.data = data;
    this.#mean(data.shown[1]);
    this.chosen = data.layers * data.heads; // behind the heads: the rollout
    this.seen = this.#newCanvas();
    this.seenNote = element("p", "small");
    this.large = this.#newCanvas();
    this.largeNote = element("p", "small");
    const seen = this.#column("seen", this.words.seen, this.seen, this.seenNote);
    const large = this.#column("large", this.words.looks, this.large, this.largeNote);
    const answers = element("div", "answers", element("p", "title", this.words.press), this.#bars());
    const top = element("div", "top", this.board.node, seen, answers, large, this.#headGrid());
    const choices = element("div", "choices", this.board.tools, this.#samples(data));
    this.said = element("p", "said", { "aria-live": "polite" });
    root.append(top, choices, this.#training(), this.said);
    this.#start(data);
  }

  // What is said of a reading, and from which of its stops on that is true (or null).
  #verdict(reading) {
    if (this.meant === null) return { said: reading.said, since: reading.since };
    return { said: reading.sentences[this.meant], since: reading.sinces[this.meant] };
  }

  // What the server has answered; an answer to an older drawing is shown until the newest comes. A drawing
  // of another address is shown in place of what stands on the board.
  take(data) {
    const [number, value] = data.shown;
    if (number > this.number) {
      this.number = number;
      this.board.clear();
      this.#start(data);
      this.#mean(value);
    }
    this.note = data.note;
    if (data.reading && !this.board.isEmpty) this.#read(data.reading);
    else if (number === this.number) this.#read(null);
  }

  get #waits() {
    return this.number > (this.answered ?? -1) && performance.now() - this.sentAt < 2000;
  }

  #start({ shown: [, value], samples, size }) {
    const all = bytes(samples);
    if (/^\d$/.test(value)) this.#show(all, size, Number(value));
    else if (value) this.board.show(bytes(value));
  }

  #show(all, size, index) {
    this.board.show(part(all, index, size ** 2));
  }

  #tell(value = this.board.encoded()) {
    this.number += 1;
    this.sentAt = performance.now();
    this.send("drawn", [this.number, value]);
    const label = this.#labelOf(value);
    if (label !== null || this.wasSample || !value) this.meant = label;
    this.wasSample = label !== null;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.send("kept", this.number), REST);
    if (!value) this.#read(null);
  }

  #tellMeanwhile() {
    if (!this.#waits && performance.now() - this.sentAt > PAUSE) this.#tell();
  }

  #bars() {
    const list = element("ol", "bars", { "aria-label": this.words.bars });
    this.rows = this.words.classes.map((name, index) => {
      const [bar, share] = [element("span", "bar"), element("span", "share")];
      const button = element("button", "digit", name);
      label(button, filled(this.words.mean, { digit: name }));
      const row = element("li", "", button, element("span", "track", bar), share);
      row.addEventListener("click", () => {
        this.meant = this.meant === index ? null : index;
        this.#draw();
      });
      list.append(row);
      return { row, button, bar, share };
    });
    const buttons = this.rows.map(({ button }) => button);
    tabStop(buttons, buttons[0]);
    roving(list, () => buttons);
    return list;
  }

  #samples({ samples, size }) {
    const all = bytes(samples);
    const buttons = Array.from({ length: all.length / size ** 2 }, (_none, i) => {
      const button = actButton("", "", () => { this.#show(all, size, i); this.#tell(String(i)); });
      button.setAttribute("aria-label", filled(this.words.sample, { digit: this.words.names[i] }));
      button.append(pictured(part(all, i, size ** 2)));
      return button;
    });
    const group = element("div", "samples", { role: "group", "aria-label": this.words.samples }, ...buttons);
    tabStop(buttons, buttons[0]);
    roving(group, () => buttons);
    return group;
  }

  #training() {
    this.at = element("span", "at");
    this.slider = slider(this.words.slider, () => this.#draw(), { max: 0 });
    this.stops = element("div", "stops", { "aria-hidden": "true" }); // the slider says it
    const head = element("label", "head", element("span", "", this.words.slider), this.at);
    return element("div", "training", head, this.stops, this.slider);
  }

  #read(reading) {
    const stop = Number(this.slider.value);
    const wasLast = !this.reading || stop === this.reading.steps.length - 1;
    if (reading) {
      this.answered = reading.number;
      this.slider.max = String(reading.steps.length - 1);
      if (wasLast) this.slider.value = this.slider.max;
    }
    this.reading = reading;
    this.slider.disabled = !reading;
    this.#draw();
  }

  #draw() {
    const { reading } = this;
    const stop = reading ? Math.min(Number(this.slider.value), reading.steps.length - 1) : 0;
    const shares = reading?.shares[stop];
    const top = shares ? highest(shares) : -1;
    this.rows.forEach(({ row, bar, share }, digit) => {
      row.classList.toggle("highest", digit === top);
      bar.style.width = shares ? `${(100 * shares[digit]).toFixed(1)}%` : "0";
      share.textContent = shares ? percent(shares[digit]) : "";
    });
    this.said.textContent = reading ? this.#verdict(reading).said : this.note;
    this.#drawStops(stop);
    this.#drawMaps(reading, stop);
    if (!reading) { this.at.textContent = ""; return; }
    const words = filled(this.words.at, {
      step: whole(reading.steps[stop]), digit: this.words.classes[top], share: percent(shares[top]),
    });
    this.at.textContent = words;
    this.slider.setAttribute("aria-valuetext", words);
  }

  #drawStops(chosen) {
    const all = this.reading?.shares ?? [];
    const since = this.reading ? this.#verdict(this.reading).since : null;
    this.stops.replaceChildren(...all.map((shares, i) => {
      const mark = element("span", "", this.words.classes[highest(shares)]);
      mark.classList.toggle("since", since !== null && i >= since);
      mark.classList.toggle("chosen", i === chosen);
      mark.style.left = stopAt(i, all.length);
      return mark;
    }));
  }

  #drawMaps(reading, stop) {
    this.rows.forEach(({ row, button }, index) => {
      row.classList.toggle("meant", index === this.meant);
      button.setAttribute("aria-pressed", String(index === this.meant));
    });
    this.seenNote.textContent = reading?.how ?? "";
    if (reading) this.#unpacked(reading);
    [this.seen, this.large, ...this.cells.map(({ canvas }) => canvas)].forEach((canvas) => {
      canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
    });
    if (!reading) { this.largeNote.textContent = ""; return; }
    paintVeil(this.seen, this.picture, [], 1);
    this.cells.forEach(({ canvas, button, name }, index) => {
      const map = mapOf(this.maps, stop, index);
      const words = this.#looksAt(canvas, map, name);
      named(button, words);
      button.title = words;
      button.setAttribute("aria-pressed", String(index === this.chosen));
    });
    const chosen = mapOf(this.maps, stop, this.chosen);
    const isHead = this.chosen < this.cells.length;
    this.largeNote.textContent = isHead
      ? filled(this.words.head, { name: this.cells[this.chosen].name })
      : this.words.rollout;
    const name = isHead ? this.cells[this.chosen].name : this.words.looks;
    this.large.setAttribute("aria-label", this.#looksAt(this.large, chosen, name));
  }

  // Draw a map, whose values are bytes; returns where it looks most, in words.
  #looksAt(canvas, map, name) {
    paintVeil(canvas, this.picture, map, 255);
    const { row, column } = strongest(map, Math.sqrt(map.length));
    return filled(this.words.strongest, { name, row: row + 1, column: column + 1 });
  }

  // Take a sample's class for what is meant by it.
  #mean(value) {
    this.meant = this.#labelOf(value);
    this.wasSample = this.meant !== null;
  }

  #labelOf(value) {
    return /^\d$/.test(value) ? this.data.labels[Number(value)] ?? null : null;
  }

  // What the server sends of a reading as text, unpacked once.
  #unpacked(reading) {
    if (this.taken === reading) return;
    this.taken = reading;
    const { layers, heads, patches } = this.data;
    this.maps = { values: bytes(reading.maps), n: layers * heads + 1, patches };
    this.picture = pictured(bytes(reading.seen));
  }

  #newCanvas() {
    const side = this.data.size * ZOOM;
    return element("canvas", "", { width: side, height: side });
  }

  #column(name, title, canvas, note) {
    dress(canvas, { role: "img", "aria-label": title });
    return element("div", name, element("p", "title", title), canvas, note);
  }

  #headGrid() {
    const { layers, heads, words } = this.data;
    const grid = element("div", "grid", { role: "group", "aria-label": words.heads });
    grid.style.gridTemplateColumns = `repeat(${heads}, minmax(34px, 104px))`;
    this.cells = Array.from({ length: layers * heads }, (_none, index) => {
      const layer = Math.floor(index / heads) + 1;
      const name = filled(words.name, { layer, head: (index % heads) + 1 });
      const canvas = this.#newCanvas();
      const button = actButton("", "", () => {
        this.chosen = this.chosen === index ? this.cells.length : index;
        this.#draw();
      });
      button.append(canvas, element("span", "", `${layer}·${(index % heads) + 1}`));
      grid.append(button);
      return { canvas, button, name };
    });
    const buttons = [...grid.children];
    tabStop(buttons, buttons[0]);
    roving(grid, () => buttons);
    return element("div", "maps", element("p", "title", words.heads), grid);
  }
}

export default function ({ data: [data], parentElement, setStateValue }) {
  const root = parentElement.querySelector(".lab");
  root.lab ??= new Lab(root, data);
  root.lab.send = setStateValue;
  root.lab.take(data);
}
