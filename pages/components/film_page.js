// What a run's own page has around its stage: the theme, paper, and what happened when.

import { isCalm } from "./dom.js";
import { settle } from "./stage.js";

const isSystemDark = () => window.matchMedia("(prefers-color-scheme: dark)").matches;

// As the reader's system has it until the button is pressed; on paper in light colours, at its end.
export function followTheme(box) {
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ?? (isSystemDark() ? "dark" : "light")) === "dark";
  document.getElementById("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; });
  let before;
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    root.classList.add("printed");
    settle(box.querySelector(".stage"));
  });
  window.addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    root.classList.remove("printed");
    settle(box.querySelector(".stage"));
  });
}

export function goToStep(box, step) {
  box.querySelector(".stage").stage.goToStep(step);
  box.scrollIntoView({ behavior: isCalm() ? "auto" : "smooth" });
}
