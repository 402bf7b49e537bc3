// The life of a component over the draws of its page.

// Some of its words are built once: in another language it begins anew, on what it began with. A draw returns what
// ends it, if anything does: with another one the earlier draw ends, and the same one lasts over all draws.
// Streamlit ends the last draw, or an earlier one late, while a newer one is there.
export function rebuilt(draw, given) {
  const { parentElement } = given;
  const before = parentElement.beginning;
  const nodes = before?.nodes ?? [...parentElement.childNodes].map((node) => node.cloneNode(true));
  const finish = (one) => {
    one?.end?.();
    if (one) one.end = null;
  };
  if (before && before.spoken !== document.documentElement.lang) {
    finish(before);
    parentElement.replaceChildren(...nodes.map((node) => node.cloneNode(true)));
  }
  const beginning = { nodes, end: draw(given), spoken: document.documentElement.lang };
  if (before?.end !== beginning.end) finish(before);
  parentElement.beginning = beginning;
  return () => { if (parentElement.beginning === beginning) finish(beginning); };
}
