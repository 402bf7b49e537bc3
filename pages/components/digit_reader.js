// A board, what a model reads on it as ten bars, and a slider over the model's training.

import { element } from "./dom.js";
import { DrawingBoard, boardButton, bytes, greys } from "./drawing_board.js";
import { roving } from "./roving.js";

const PAUSE = 150; // milliseconds between two looks at a stroke that is still being drawn

const filled = (words, values) => words.replace(/\{(\w+)\}/g, (_all, name) => values[name]);
const whole = (number) => number.toLocaleString("en");
export const highest = (shares) => shares.indexOf(Math.max(...shares));
export const percent = (share) => `${Math.round(100 * share)}%`;

// Where the thumb of a slider of n stops stands at stop i, as CSS: half a thumb is left at each end.
export const stopAt = (i, n) => `calc(8px + (100% - 16px) * ${n > 1 ? i / (n - 1) : 1})`;

export class Reader {
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
    const top = element("div", "top");
    top.append(this.board.node, this.#bars());
    const choices = element("div", "choices");
    choices.append(this.#tools(), this.#samples(data));
    this.said = element("p", "said");
    this.said.setAttribute("aria-live", "polite");
    root.append(top, choices, this.#training(), this.said);
    this.furnish({ top, choices, data });
    this.start(data);
  }

  // For a reader that shows more: furnish adds to its parts once, drawn shows a stop of a reading or
  // that there is none, and told hears what the board sends.
  furnish() {}

  drawn() {}

  told() {}

  // What is said of a reading, and from which of its stops on that is true (or null).
  verdict({ said, since }) {
    return { said, since };
  }

  // Draw the answer again, which is shown in another way now.
  redraw() {
    this.#draw();
  }

  // What the server has answered; an answer to an older drawing is shown until the newest comes.
  take(data) {
    this.note = data.note;
    if (data.reading && !(this.board.isEmpty)) this.#read(data.reading);
    else if (data.shown[0] === this.number) this.#read(null);
  }

  get #waits() {
    return this.number > (this.answered ?? -1) && performance.now() - this.sentAt < 2000;
  }

  start({ shown: [, value], samples, size }) {
    const all = bytes(samples);
    if (/^\d$/.test(value)) this.#show(all, size, Number(value));
    else if (value) this.board.show(bytes(value), Math.sqrt(bytes(value).length));
  }

  #show(all, size, index) {
    this.board.show(all.subarray(index * size ** 2, (index + 1) * size ** 2), size);
  }

  #tell(value = this.board.isEmpty ? "" : this.board.encoded()) {
    this.number += 1;
    this.sentAt = performance.now();
    this.send("drawn", [this.number, value]);
    this.told(value);
    if (!value) this.#read(null);
  }

  #tellMeanwhile() {
    if (!this.#waits && performance.now() - this.sentAt > PAUSE) this.#tell();
  }

  #bars() {
    const list = element("ol", "bars");
    list.setAttribute("aria-label", this.words.bars);
    this.rows = this.words.classes.map((name) => {
      const row = element("li");
      const track = element("span", "track");
      const [bar, share] = [element("span", "bar"), element("span", "share")];
      track.append(bar);
      row.append(element("span", "digit", name), track, share);
      list.append(row);
      return { row, bar, share };
    });
    return list;
  }

  #tools() {
    const tools = element("div", "tools");
    tools.append(
      boardButton(this.words.undo, () => { this.board.undo(); this.#tell(); }),
      boardButton(this.words.clear, () => { this.board.clear(); this.#tell(); }),
    );
    return tools;
  }

  #samples({ samples, size }) {
    const group = element("div", "samples");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", this.words.samples);
    const all = bytes(samples);
    const buttons = Array.from({ length: all.length / size ** 2 }, (_none, i) => {
      const button = boardButton("", () => { this.#show(all, size, i); this.#tell(String(i)); });
      button.setAttribute("aria-label", filled(this.words.sample, { digit: this.words.names[i] }));
      const picture = element("canvas");
      picture.width = size;
      picture.height = size;
      const pixels = all.subarray(i * size ** 2, (i + 1) * size ** 2);
      picture.getContext("2d").putImageData(greys(pixels, size), 0, 0);
      button.append(picture);
      return button;
    });
    roving(buttons);
    group.append(...buttons);
    return group;
  }

  #training() {
    const box = element("div", "training");
    const head = element("label", "head");
    this.at = element("span", "at");
    this.slider = element("input");
    this.slider.type = "range";
    this.slider.min = "0";
    this.slider.max = "0";
    this.slider.addEventListener("input", () => this.#draw());
    this.slider.setAttribute("aria-label", this.words.slider);
    head.append(element("span", "", this.words.slider), this.at);
    this.stops = element("div", "stops");
    this.stops.setAttribute("aria-hidden", "true"); // the slider says it
    box.append(head, this.stops, this.slider);
    return box;
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
    this.said.textContent = reading ? this.verdict(reading).said : this.note;
    this.#drawStops(stop);
    this.drawn(reading, stop);
    if (!reading) { this.at.textContent = ""; return; }
    const words = filled(this.words.at, {
      step: whole(reading.steps[stop]), digit: this.words.classes[top], share: percent(shares[top]),
    });
    this.at.textContent = words;
    this.slider.setAttribute("aria-valuetext", words);
  }

  #drawStops(chosen) {
    const all = this.reading?.shares ?? [];
    const since = this.reading ? this.verdict(this.reading).since : null;
    this.stops.replaceChildren(...all.map((shares, i) => {
      const mark = element("span", "", this.words.classes[highest(shares)]);
      mark.classList.toggle("since", since !== null && i >= since);
      mark.classList.toggle("chosen", i === chosen);
      mark.style.left = stopAt(i, all.length);
      return mark;
    }));
  }
}

export default function ({ data: [data], parentElement, setStateValue }) {
  const root = parentElement.querySelector(".reader");
  root.digitReader ??= new Reader(root, data);
  root.digitReader.send = setStateValue;
  root.digitReader.take(data);
}
