// Keys that belong to the whole page, from wherever nobody types.

const TYPES = "input, textarea, select, [contenteditable]:not([contenteditable=false]), [role=textbox]";

// Whether a key was pressed for the page: not in a field, not with others, not under an open dialog.
export function isPageKey(event, key) {
  if (event.key !== key || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
  return !event.composedPath().some((node) => node.matches?.(TYPES)) && !document.querySelector("[role=dialog]");
}

// ---- arrow keys among buttons: one stop of the Tab key for many

const BY = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

// Where an arrow key leads from one of so many places: in a row it begins again behind its end; in a grid of so
// many columns it stays at an edge; -1 for other keys.
export function moved(key, at, count, columns = 0) {
  if (!(key in BY)) return -1;
  if (!columns) return (at + BY[key] + count) % count;
  const isDown = key === "ArrowUp" || key === "ArrowDown";
  const to = at + BY[key] * (isDown ? columns : 1);
  const isInRow = isDown || Math.floor(to / columns) === Math.floor(at / columns);
  return to >= 0 && to < count && isInRow ? to : at;
}

export function tabStop(buttons, stop) {
  buttons.forEach((button) => { button.tabIndex = button === stop ? 0 : -1; });
}

// Below a root; the stop is the button that was focused last. buttonsOf, columnsOf: get one that has the focus.
// arrived: gets the place of the button that a key has led to.
export function roving(root, buttonsOf, { columnsOf = () => 0, arrived = () => {} } = {}) {
  const stop = (button) => {
    const buttons = buttonsOf(button);
    if (buttons.includes(button)) tabStop(buttons, button);
  };
  root.addEventListener("focusin", (event) => stop(event.target));
  root.addEventListener("keydown", (event) => {
    const buttons = buttonsOf(event.target);
    const from = buttons.indexOf(event.target);
    const to = from < 0 ? -1 : moved(event.key, from, buttons.length, columnsOf(event.target));
    if (to < 0) return;
    event.preventDefault();
    if (to === from) return;
    buttons[to].focus();
    arrived(to);
  });
}
