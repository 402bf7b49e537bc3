// One stop of the Tab key for many buttons: arrow keys go on from there.

const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

// The stop is the button that was focused last, at first that of the place ``first``.
export function roving(buttons, first = 0) {
  buttons.forEach((button, i) => {
    button.tabIndex = i === first ? 0 : -1;
    button.addEventListener("focus", () => {
      buttons.forEach((other) => { other.tabIndex = other === button ? 0 : -1; });
    });
    button.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step) return;
      event.preventDefault();
      buttons[(i + step + buttons.length) % buttons.length].focus();
    });
  });
}
