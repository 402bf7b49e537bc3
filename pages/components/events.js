// What components of one page tell each other.

// While the training plays in the grid, the chosen head's weights of the moment go to whoever shows
// that head: { animation, step, values, rows, columns }. A component is a script of its own, so what
// was told last stands on the window: one that is drawn meanwhile begins there.
const FRAME = "attention-frame";
const LAST = Symbol.for(FRAME);

export function tellFrame(detail) {
  window[LAST] = detail;
  window.dispatchEvent(new CustomEvent(FRAME, { detail }));
}

// The film rests where the server stands: what the server draws is right again, also where that was drawn
// before this is known.
export function forgetFrame() {
  delete window[LAST];
  window.dispatchEvent(new CustomEvent(FRAME, { detail: null }));
}

export const lastFrame = () => window[LAST] ?? null;

// Hear of the last frame, or null, and of every one that comes; returns what ends that.
export function followFrames(act) {
  const listen = (event) => act(event.detail);
  window.addEventListener(FRAME, listen);
  act(lastFrame());
  return () => window.removeEventListener(FRAME, listen);
}
