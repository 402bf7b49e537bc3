// Keys that belong to the whole page, from wherever nobody types.

const TYPES = "input, textarea, select, [contenteditable]:not([contenteditable=false]), [role=textbox]";

// Whether a key was pressed for the page: not in a field, not with others, not under an open dialog.
export function isPageKey(event, key) {
  if (event.key !== key || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
  return !event.composedPath().some((node) => node.matches?.(TYPES)) && !document.querySelector("[role=dialog]");
}

// ---- arrow keys among buttons: one stop of the Tab key for many

const BY = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

// Where an arrow key leads from one of so many places, in rows of so many columns if it is a grid: not beyond
// an edge; -1 for other keys.
export function moved(key, at, count, columns = 0) {
  if (!(key in BY)) return -1;
  const isDown = columns > 0 && (key === "ArrowUp" || key === "ArrowDown");
  const to = at + BY[key] * (isDown ? columns : 1);
  const isInRow = isDown || !columns || Math.floor(to / columns) === Math.floor(at / columns);
  return to >= 0 && to < count && isInRow ? to : at;
}

export function stopAt(buttons, stop) {
  buttons.forEach((button) => { button.tabIndex = button === stop ? 0 : -1; });
}

// Among the buttons of a row, which begins again behind its end. The stop is the button that was focused last,
// at first that of the place ``first``.
export function roving(buttons, first = 0) {
  stopAt(buttons, buttons[first]);
  buttons.forEach((button, i) => {
    button.addEventListener("focus", () => stopAt(buttons, button));
    button.addEventListener("keydown", (event) => {
      if (!(event.key in BY)) return;
      event.preventDefault();
      buttons[(i + BY[event.key] + buttons.length) % buttons.length].focus();
    });
  });
}
