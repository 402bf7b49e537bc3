// A run as one page that asks nobody: what the stage and the model need stands in the page itself.

import { buildAsking } from "./film_asking.js";
import { keep } from "./stage_store.js";
import { element } from "./dom.js";
import { openedPart } from "./film_parts.js";
import { settle } from "./stage.js";
import stage from "./stage.js";
import { unpack } from "./packed.js";

const box = document.getElementById("stage");
const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

async function show(film, [kind, example]) {
  if (film.views.length) {
    const number = film.views.findIndex((view) => view.kind === kind && view.example === example);
    const { name } = film.views[number];
    keep(unpack(await openedPart(`view-${number}`)));
    film.stage.name = name;
  }
  stage({ data: [film.stage], parentElement: box, setTriggerValue: (_name, chosen) => show(film, chosen) });
}

function theme() {
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ?? (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
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

function moments() {
  document.querySelectorAll("button[data-step]").forEach((button) => {
    button.addEventListener("click", () => {
      box.querySelector(".stage").stage.goToStep(Number(button.dataset.step));
      box.scrollIntoView({ behavior: calm() ? "auto" : "smooth" });
    });
  });
}

async function begin() {
  const film = JSON.parse(new TextDecoder().decode(await openedPart("film")));
  await show(film, film.first);
  theme();
  moments();
  const asking = document.getElementById("asking");
  if (film.asking) buildAsking(asking, film.asking);
  document.documentElement.dataset.ready = "";
}

begin().catch((error) => {
  document.getElementById("problem").hidden = false;
  document.getElementById("problem").append(element("code", "", String(error)));
});
