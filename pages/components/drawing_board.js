// A board to draw on: white ink on black, as MNIST is, stroke by stroke, so that one can be undone.

import { pictured } from "./cells.js";
import { actButton, element } from "./dom.js";

const INK = 0.085; // width of a line, of the board's side: about 2.4 of MNIST's 28 pixels

// What is drawn, as side x side grey values.
export class DrawingBoard {
  // heard: onStroke() when a stroke has ended or was taken back or away, onMove() while the pen moves.
  constructor(side, words, heard) {
    this.side = side;
    this.heard = heard;
    this.strokes = [];
    this.picture = null; // stands below the strokes; the first stroke takes its place
    this.pen = null;
    this.canvas = element("canvas", "", { width: side, height: side, role: "img", "aria-label": words.pad });
    this.hint = element("div", "hint", words.hint);
    this.node = element("div", "board", this.canvas, this.hint);
    const takes = (does) => () => { does(); this.heard.onStroke(); };
    this.tools = element(
      "div", "tools",
      actButton("", words.undo, takes(() => this.undo())),
      actButton("", words.clear, takes(() => this.clear())),
    );
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.#listen();
    this.#draw();
  }

  get isEmpty() {
    return !this.strokes.length && !this.picture;
  }

  undo() {
    this.strokes.pop();
    this.picture = null;
    this.#draw();
  }

  clear() {
    this.strokes = [];
    this.undo();
  }

  // Show grey values, size x size, in place of what is drawn.
  show(values) {
    this.strokes = [];
    this.picture = pictured(values);
    this.#draw();
  }

  // The grey values as base64; an empty text for an empty board.
  encoded() {
    if (this.isEmpty) return "";
    const { data } = this.context.getImageData(0, 0, this.side, this.side);
    let text = "";
    for (let i = 0; i < data.length; i += 4) text += String.fromCharCode(data[i]);
    return btoa(text);
  }

  #draw() {
    const { context, side } = this;
    context.fillStyle = "#000";
    context.fillRect(0, 0, side, side);
    if (this.picture) context.drawImage(this.picture, 0, 0, side, side);
    this.strokes.forEach((points) => points.forEach((to, i) => this.#line(points[i - 1] ?? to, to)));
    this.hint.hidden = !this.isEmpty;
  }

  #line(from, to) {
    const { context } = this;
    context.strokeStyle = "#fff";
    context.lineWidth = this.side * INK;
    context.lineCap = "round";
    context.lineJoin = "round";
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(to[0] + 0.01, to[1]); // a line of no length would not be drawn
    context.stroke();
  }

  #point(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.side / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }

  #listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      event.preventDefault();
      canvas.setPointerCapture(event.pointerId);
      this.pen = [this.#point(event)];
      this.picture = null;
      this.strokes.push(this.pen);
      this.#draw();
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.pen) return;
      const events = event.getCoalescedEvents?.() ?? [];
      for (const part of events.length ? events : [event]) {
        const to = this.#point(part);
        this.#line(this.pen.at(-1), to);
        this.pen.push(to);
      }
      this.heard.onMove?.();
    });
    const stop = () => {
      if (!this.pen) return;
      this.pen = null;
      this.heard.onStroke();
    };
    canvas.addEventListener("pointerup", stop);
    canvas.addEventListener("pointercancel", stop);
  }
}

// A standalone board: after each stroke the server gets the drawing.
export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".drawing-board");
  root.send = setStateValue;
  if (root.board) return;
  root.board = new DrawingBoard(data.side, data.words, { onStroke: () => root.send("pixels", root.board.encoded()) });
  root.replaceChildren(root.board.node, root.board.tools);
}
