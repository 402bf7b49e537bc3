// A digit reader at large: beside the strokes what the model sees of them, and where it looks, head by
// head and through all layers, at every time of its training. A press on a bar says what was meant.

import { paintVeil, part, strongest } from "./cells.js";
import { actButton, dress, element, filled, label, named } from "./dom.js";
import { Reader } from "./digit_reader.js";
import { bytes, greys } from "./drawing_board.js";
import { roving } from "./roving.js";

const REST = 700; // milliseconds after the last stroke, when the address takes up the drawing
const ZOOM = 8; // pixels of a canvas to one of the picture, so that the edges of patches are sharp

// One of the maps (times, maps, patches), in bytes: each patch as a share of the largest of its map.
export function mapOf(maps, stop, index) {
  const { values, n, patches } = maps;
  return part(values, stop * n + index, patches);
}

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
    paintVeil(this.seen, this.picture, [], 1);
    this.cells.forEach(({ canvas, button, name }, index) => {
      const map = mapOf(this.maps, stop, index);
      const words = this.looksAt(canvas, map, name);
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
    this.large.setAttribute("aria-label", this.looksAt(this.large, chosen, name));
  }

  // Draw a map, whose values are bytes; returns where it looks most, in words.
  looksAt(canvas, map, name) {
    paintVeil(canvas, this.picture, map, 255);
    const { row, column } = strongest(map, Math.sqrt(map.length));
    return filled(this.words.strongest, { name, row: row + 1, column: column + 1 });
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
    dress(this.picture, { width: size, height: size });
    this.picture.getContext("2d").putImageData(greys(bytes(reading.seen), size), 0, 0);
  }

  newCanvas() {
    const side = this.data.size * ZOOM;
    return element("canvas", "", { width: side, height: side });
  }

  column(name, title, canvas, note) {
    dress(canvas, { role: "img", "aria-label": title });
    return element("div", name, element("p", "title", title), canvas, note);
  }

  headGrid() {
    const { layers, heads, words } = this.data;
    const grid = element("div", "grid", { role: "group", "aria-label": words.heads });
    grid.style.gridTemplateColumns = `repeat(${heads}, minmax(34px, 104px))`;
    this.cells = Array.from({ length: layers * heads }, (_none, index) => {
      const layer = Math.floor(index / heads) + 1;
      const name = filled(words.name, { layer, head: (index % heads) + 1 });
      const canvas = this.newCanvas();
      const button = actButton("", "", () => {
        this.chosen = this.chosen === index ? this.cells.length : index;
        this.redraw();
      });
      button.append(canvas, element("span", "", `${layer}·${(index % heads) + 1}`));
      grid.append(button);
      return { canvas, button, name };
    });
    roving([...grid.children]);
    return element("div", "maps", element("p", "title", words.heads), grid);
  }

  askMeant(row, index) {
    const button = element("button", "digit", this.words.classes[index]);
    label(button, filled(this.words.mean, { digit: this.words.classes[index] }));
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
