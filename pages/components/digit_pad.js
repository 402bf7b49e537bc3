// A board; after each stroke its grey values go to the server, an empty text for an empty board.

import { DrawingBoard } from "./drawing_board.js";

function build(root, data) {
  root.textContent = "";
  const pad = { send: null };
  const tell = () => pad.send("pixels", board.isEmpty ? "" : board.encoded());
  const board = new DrawingBoard(data.side, data.words, { onStroke: tell });
  root.append(board.node, board.tools(data.words, tell));
  return pad;
}

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".pad");
  root.digitPad ??= build(root, data);
  root.digitPad.send = setStateValue;
}
