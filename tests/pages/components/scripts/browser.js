// As much of a browser as scripts need that make elements; time passes when a test says so.

class Node {
  constructor() { Object.assign(this, { dataset: {}, listeners: {}, attributes: {} }); }

  append() {}

  addEventListener(name, act) { this.listeners[name] = act; }

  setAttribute(name, value) { this.attributes[name] = value; }
}

// Returns what lets milliseconds pass, in frames of the browser.
export function browser() {
  let due = null;
  let now = 0;
  Object.assign(globalThis, {
    document: { createElement: () => new Node() },
    window: { matchMedia: () => ({ matches: false }) },
    requestAnimationFrame: (act) => { due = act; return 1; },
    cancelAnimationFrame: () => { due = null; },
  });
  return (milliseconds) => {
    for (const end = now + milliseconds; due && now < end;) {
      const act = due;
      due = null;
      now += 20;
      act(now);
    }
  };
}
