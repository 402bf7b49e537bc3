// A component builds some of its words once. In another language it begins anew, on what it began with.

export function rebuilt(draw, given) {
  const { parentElement } = given;
  const before = parentElement.beginning;
  const nodes = before?.nodes ?? [...parentElement.childNodes].map((node) => node.cloneNode(true));
  if (before && before.spoken !== document.documentElement.lang) {
    before.cleanUp?.();
    parentElement.replaceChildren(...nodes.map((node) => node.cloneNode(true)));
  }
  const cleanUp = draw(given);
  parentElement.beginning = { nodes, cleanUp, spoken: document.documentElement.lang };
  return cleanUp;
}
