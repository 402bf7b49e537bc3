// A board over the picture, to draw what the model reads.

import { actButton, element } from "./dom.js";
import { DrawingBoard } from "./drawing_board.js";

// send: gets the drawing after each stroke, "" for an empty board.
export class BoardPanel {
  constructor(view, send) {
    const { side, words } = view.board;
    this.send = send;
    this.toggle = actButton("small", words.draw, () => this.#show(this.node.hidden));
    this.board = new DrawingBoard(side, words, { onStroke: () => this.#tell() });
    this.back = actButton("", words.back, () => { this.board.clear(); this.#tell(); this.#show(false); this.toggle.focus(); });
    this.board.tools.prepend(this.back);
    this.node = element("div", "panel", this.board.node, this.board.tools);
    this.#show(false);
    this.take(view);
  }

  // Follow new data: a drawing of a link stands on the board, too.
  take(view) {
    this.back.hidden = !view.board.isOwn;
    const image = view.lanes[0].stages.find((stage) => stage.kind === "image");
    if (view.board.isOwn && !this.isTaken) this.board.show(image.values);
    this.isTaken = true;
  }

  #tell() {
    this.send(this.board.encoded());
  }

  #show(isShown) {
    this.node.hidden = !isShown;
    this.toggle.setAttribute("aria-expanded", String(isShown));
  }
}
