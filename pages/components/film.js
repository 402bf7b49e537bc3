// A run as one page that asks nobody: what the stage and the model need stands in the page itself.

import { buildAsking } from "./film_asking.js";
import { keep } from "./stage_store.js";
import { element } from "./dom.js";
import { followTheme, goToStep } from "./film_page.js";
import { openedPart } from "./film_parts.js";
import stage from "./stage.js";
import { unpack } from "./packed.js";

const box = document.getElementById("stage");

async function show(film, [kind, example]) {
  if (film.views.length) {
    const number = film.views.findIndex((view) => view.kind === kind && view.example === example);
    const { name } = film.views[number];
    keep(unpack(await openedPart(`view-${number}`)));
    film.stage.name = name;
  }
  stage({ data: [film.stage], parentElement: box, setTriggerValue: (_name, chosen) => show(film, chosen) });
}

function moments() {
  document.querySelectorAll("button[data-step]").forEach((button) => {
    button.addEventListener("click", () => goToStep(box, Number(button.dataset.step)));
  });
}

async function begin() {
  const film = JSON.parse(new TextDecoder().decode(await openedPart("film")));
  await show(film, film.first);
  followTheme(box);
  moments();
  const asking = document.getElementById("asking");
  if (film.asking) buildAsking(asking, film.asking);
  document.documentElement.dataset.ready = "";
}

begin().catch((error) => {
  document.getElementById("problem").hidden = false;
  document.getElementById("problem").append(element("code", "", String(error)));
});
