// A digit reader at large: beside the strokes what the model sees of them, and where it looks, head by
// head and through all layers, at every time of its training. A press on a bar says what was meant.

import { element, named } from "./dom.js";
import { Reader } from "./digit_reader.js";
import { bytes, greys } from "./drawing_board.js";
import { roving } from "./roving.js";

const REST = 700; // milliseconds after the last stroke, when the address takes up the drawing
const ZOOM = 8; // pixels of a canvas to one of the picture, so that the edges of patches are sharp
const TOP = 0.85; // the most ink that a patch gets

// One of the maps (times, maps, patches), in bytes: each patch as a share of the largest of its map.
export function mapOf(maps, stop, index) {
  const { values, n, patches } = maps;
  const first = (stop * n + index) * patches;
  return values.subarray(first, first + patches);
}

// The place of the largest value, from 1, in a square of values.
export function strongest(values) {
  const at = values.indexOf(Math.max(...values));
  const side = Math.sqrt(values.length);
  return { row: Math.floor(at / side) + 1, column: (at % side) + 1 };
}

const filled = (words, values) => words.replace(/\{(\w+)\}/g, (_all, name) => values[name]);

// Its methods are not private: those of a derived class are not there yet when Reader furnishes it.
class Lab extends Reader {
  furnish({ top, data }) {
    const [, value] = data.shown;
    this.data = data;
    this.meant = this.labelOf(value);
    this.wasSample = this.meant !== null;
    this.chosen = data.layers * data.heads; // behind the heads: the rollout
    this.seen = this.newCanvas();
    this.seenNote = element("p", "small");
    this.large = this.newCanvas();
    this.largeNote = element("p", "small");
    const seen = this.column("seen", data.words.seen, this.seen, this.seenNote);
    const large = this.column("large", data.words.looks, this.large, this.largeNote);
    top.firstElementChild.after(seen);
    const bars = element("div", "answers");
    const list = top.querySelector(".bars");
    list.replaceWith(bars);
    bars.append(element("p", "title", data.words.press), list);
    top.append(large, this.headGrid());
    this.rows.forEach(({ row }, index) => this.askMeant(row, index));
    roving(this.rows.map(({ row }) => row.firstElementChild));
    this.picture = element("canvas");
  }

  // A drawing of another address is shown in place of what stands on the board.
  take(data) {
    const [number, value] = data.shown;
    if (number > this.number) {
      this.number = number;
      this.board.clear();
      this.start(data);
      this.meant = this.labelOf(value);
      this.wasSample = this.meant !== null;
    }
    super.take(data);
  }

  told(value) {
    const label = this.labelOf(value);
    if (label !== null || this.wasSample || !value) this.meant = label;
    this.wasSample = label !== null;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.send("kept", this.number), REST);
  }

  verdict(reading) {
    if (this.meant === null) return { said: reading.said, since: reading.since };
    return { said: reading.sentences[this.meant], since: reading.sinces[this.meant] };
  }

  drawn(reading, stop) {
    this.rows.forEach(({ row }, index) => {
      row.classList.toggle("meant", index === this.meant);
      row.querySelector("button").setAttribute("aria-pressed", String(index === this.meant));
    });
    this.seenNote.textContent = reading?.how ?? "";
    if (reading) this.unpacked(reading);
    [this.seen, this.large, ...this.cells.map(({ canvas }) => canvas)].forEach((canvas) => {
      canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
    });
    if (!reading) { this.largeNote.textContent = ""; return; }
    this.paint(this.seen, null);
    this.cells.forEach(({ canvas, button, name }, index) => {
      const map = mapOf(this.maps, stop, index);
      this.paint(canvas, map);
      const words = filled(this.words.strongest, { name, ...strongest(map) });
      named(button, words);
      button.title = words;
      button.setAttribute("aria-pressed", String(index === this.chosen));
    });
    const chosen = mapOf(this.maps, stop, this.chosen);
    this.paint(this.large, chosen);
    const isHead = this.chosen < this.cells.length;
    this.largeNote.textContent = isHead
      ? filled(this.words.head, { name: this.cells[this.chosen].name })
      : this.words.rollout;
    const name = isHead ? this.cells[this.chosen].name : this.words.looks;
    this.large.setAttribute("aria-label", filled(this.words.strongest, { name, ...strongest(chosen) }));
  }

  labelOf(value) {
    return /^\d$/.test(value) ? this.data.labels[Number(value)] ?? null : null;
  }

  // What the server sends of a reading as text, unpacked once.
  unpacked(reading) {
    if (this.taken === reading) return;
    this.taken = reading;
    const { layers, heads, patches } = this.data;
    this.maps = { values: bytes(reading.maps), n: layers * heads + 1, patches };
    const size = Math.sqrt(bytes(reading.seen).length);
    this.picture.width = size;
    this.picture.height = size;
    this.picture.getContext("2d").putImageData(greys(bytes(reading.seen), size), 0, 0);
  }

  newCanvas() {
    const canvas = element("canvas");
    canvas.width = this.data.size * ZOOM;
    canvas.height = this.data.size * ZOOM;
    return canvas;
  }

  column(name, title, canvas, note) {
    const column = element("div", name);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", title);
    column.append(element("p", "title", title), canvas, note);
    return column;
  }

  paint(canvas, map) {
    const context = canvas.getContext("2d");
    const edge = canvas.width;
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, 0, 0, edge, edge);
    if (!map) return;
    const side = Math.sqrt(map.length);
    const patch = edge / side;
    map.forEach((value, i) => {
      context.fillStyle = `rgba(${this.data.ink}, ${(value / 255) * TOP})`;
      context.fillRect((i % side) * patch, Math.floor(i / side) * patch, patch, patch);
    });
  }

  headGrid() {
    const { layers, heads, words } = this.data;
    const box = element("div", "maps");
    box.append(element("p", "title", words.heads));
    const grid = element("div", "grid");
    grid.setAttribute("role", "group");
    grid.setAttribute("aria-label", words.heads);
    grid.style.gridTemplateColumns = `repeat(${heads}, minmax(34px, 104px))`;
    this.cells = Array.from({ length: layers * heads }, (_none, index) => {
      const layer = Math.floor(index / heads) + 1;
      const name = filled(words.name, { layer, head: (index % heads) + 1 });
      const button = element("button");
      const canvas = this.newCanvas();
      button.type = "button";
      button.append(canvas, element("span", "", `${layer}·${(index % heads) + 1}`));
      button.addEventListener("click", () => {
        this.chosen = this.chosen === index ? this.cells.length : index;
        this.redraw();
      });
      grid.append(button);
      return { canvas, button, name };
    });
    roving([...grid.children]);
    box.append(grid);
    return box;
  }

  askMeant(row, index) {
    const button = element("button", "digit", this.words.classes[index]);
    const words = filled(this.words.mean, { digit: this.words.classes[index] });
    button.type = "button";
    button.title = words;
    button.setAttribute("aria-label", words);
    row.firstElementChild.replaceWith(button);
    row.addEventListener("click", () => {
      this.meant = this.meant === index ? null : index;
      this.redraw();
    });
  }
}

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".reader");
  root.digitLab ??= new Lab(root, data);
  root.digitLab.send = setStateValue;
  root.digitLab.take(data);
}
