// A run in a notebook: its replay page in a frame of its own, so that two of them never meet.
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = model.get("title");
  frame.srcdoc = model.get("page");
  frame.style.cssText = `width: 100%; height: ${model.get("height")}px; border: 0;`;
  el.append(frame);
  return () => frame.remove();
}

export default { render };
