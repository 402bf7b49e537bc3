// Strokes are drawn at SIDE x SIDE pixels; after each stroke the grey values go to the server.

function build(root, data) {
  root.textContent = "";
  const board = document.createElement("div");
  board.className = "board";
  const canvas = document.createElement("canvas");
  canvas.width = data.side;
  canvas.height = data.side;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", data.words.pad);
  const hint = document.createElement("div");
  hint.className = "hint";
  hint.textContent = data.words.hint;
  board.append(canvas, hint);
  const clear = document.createElement("button");
  clear.type = "button";
  clear.textContent = data.words.clear;
  root.append(board, clear);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#000";
  context.fillRect(0, 0, data.side, data.side);
  return { canvas, context, hint, clear };
}

function encode(context, side) {
  const { data } = context.getImageData(0, 0, side, side);
  let text = "";
  for (let i = 0; i < data.length; i += 4) text += String.fromCharCode(data[i]);
  return btoa(text);
}

function listen(state) {
  const { canvas, context, hint, clear } = state.parts;
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    const scale = state.side / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  };
  const line = (from, to) => {
    context.strokeStyle = "#fff";
    context.lineWidth = state.side * 0.085; // about 2.4 of MNIST's 28 pixels
    context.lineCap = "round";
    context.lineJoin = "round";
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    hint.hidden = true;
    state.last = point(event);
    line(state.last, [state.last[0] + 0.01, state.last[1]]);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!state.last) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const part of events.length ? events : [event]) {
      const to = point(part);
      line(state.last, to);
      state.last = to;
    }
  });
  const stop = () => {
    if (!state.last) return;
    state.last = null;
    state.send("pixels", encode(context, state.side));
  };
  canvas.addEventListener("pointerup", stop);
  canvas.addEventListener("pointercancel", stop);
  clear.addEventListener("click", () => {
    context.fillStyle = "#000";
    context.fillRect(0, 0, state.side, state.side);
    hint.hidden = false;
    state.send("pixels", "");
  });
}

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".pad");
  if (!root.digitPad) {
    root.digitPad = { side: data.side, parts: build(root, data), last: null };
    root.digitPad.send = setStateValue;
    listen(root.digitPad);
  }
  root.digitPad.send = setStateValue;
}
