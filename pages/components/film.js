// A run as one page that asks nobody: what the stage and the model need stands in the page itself.

import { buildAsking } from "./film_asking.js";
import { element } from "./dom.js";
import { followTheme, goToStep } from "./film_page.js";
import { ownPart } from "./film_parts.js";
import { playFilm } from "./film_stage.js";

const box = document.getElementById("stage");

function moments() {
  document.querySelectorAll("button[data-step]").forEach((button) => {
    button.addEventListener("click", () => goToStep(box, Number(button.dataset.step)));
  });
}

async function begin() {
  const film = await playFilm(box, ownPart);
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
