// A board, what a model reads on it as ten bars, and a slider over the model's training.

import { part } from "./cells.js";
import { actButton, element, filled, slider } from "./dom.js";
import { DrawingBoard, bytes, greys } from "./drawing_board.js";
import { roving } from "./roving.js";

const PAUSE = 150; // milliseconds between two looks at a stroke that is still being drawn

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
    const top = element("div", "top", this.board.node, this.#bars());
    const tools = this.board.tools(data.words, () => this.#tell());
    const choices = element("div", "choices", tools, this.#samples(data));
    this.said = element("p", "said", { "aria-live": "polite" });
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
    this.board.show(part(all, index, size ** 2), size);
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
    const list = element("ol", "bars", { "aria-label": this.words.bars });
    this.rows = this.words.classes.map((name) => {
      const [bar, share] = [element("span", "bar"), element("span", "share")];
      const row = element("li", "", element("span", "digit", name), element("span", "track", bar), share);
      list.append(row);
      return { row, bar, share };
    });
    return list;
  }

  #samples({ samples, size }) {
    const all = bytes(samples);
    const buttons = Array.from({ length: all.length / size ** 2 }, (_none, i) => {
      const button = actButton("", "", () => { this.#show(all, size, i); this.#tell(String(i)); });
      button.setAttribute("aria-label", filled(this.words.sample, { digit: this.words.names[i] }));
      const picture = element("canvas", "", { width: size, height: size });
      picture.getContext("2d").putImageData(greys(part(all, i, size ** 2), size), 0, 0);
      button.append(picture);
      return button;
    });
    roving(buttons);
    return element("div", "samples", { role: "group", "aria-label": this.words.samples }, ...buttons);
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
