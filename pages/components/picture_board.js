// A board over the picture, to draw what the model reads.

import { element } from "./dom.js";
import { DrawingBoard, boardButton } from "./drawing_board.js";

// send: gets the drawing after each stroke, "" for an empty board.
export class BoardPanel {
  constructor(view, send) {
    const { side, words } = view.board;
    this.send = send;
    this.node = element("div", "panel");
    this.node.hidden = true;
    this.toggle = boardButton(words.draw, () => this.#show(this.node.hidden));
    this.toggle.classList.add("small");
    this.toggle.setAttribute("aria-expanded", "false");
    this.board = new DrawingBoard(side, words, { onStroke: () => this.#tell() });
    this.back = boardButton(words.back, () => { this.board.clear(); this.#tell(); this.#show(false); this.toggle.focus(); });
    const tools = element("div", "tools");
    tools.append(
      this.back,
      boardButton(words.undo, () => { this.board.undo(); this.#tell(); }),
      boardButton(words.clear, () => { this.board.clear(); this.#tell(); }),
    );
    this.node.append(this.board.node, tools);
    this.take(view);
  }

  // Follow new data: a drawing of a link stands on the board, too.
  take(view) {
    this.back.hidden = !view.board.isOwn;
    const image = view.lanes[0].stages.find((stage) => stage.kind === "image");
    if (view.board.isOwn && !this.isTaken) this.board.show(image.values, image.shape.at(-1));
    this.isTaken = true;
  }

  #tell() {
    this.send(this.board.isEmpty ? "" : this.board.encoded());
  }

  #show(isShown) {
    this.node.hidden = !isShown;
    this.toggle.setAttribute("aria-expanded", String(isShown));
  }
}
