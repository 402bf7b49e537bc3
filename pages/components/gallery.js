// The recorded runs side by side: the first on a whole stage, each other on a small one that plays when it
// comes into sight, and again for who points at it.

import { followTheme, playFilm } from "./film_page.js";

const AHEAD = "200px"; // below the screen: what is read before it comes into sight
const NARROW = 720; // pixels below which the first stage is a small one, too

const home = document.getElementById("home");
const hero = document.getElementById("hero");

// A link of the whole app may name a run that is here.
function follow() {
  const wanted = new URLSearchParams(window.location.search).get("run");
  if (home.dataset.runs.split(" ").includes(wanted)) window.location.replace(`${home.getAttribute("href")}${wanted}/`);
  else if (hero) document.getElementById("unknown").hidden = !wanted;
}

async function play(box, playing) {
  const { at } = box.dataset;
  const answer = await fetch(at);
  if (!answer.ok) throw new Error(`${at}: ${answer.status}`);
  const page = await answer.text(); // parsed, its styles would break this page's policy
  const partOf = (name) => new RegExp(`id="part-${name}">([^<]*)<`).exec(page)[1];
  await playFilm(box, partOf, playing, at);
}

function lacking(error) {
  document.getElementById("problem").hidden = false;
  if (!(error instanceof TypeError)) console.warn(error);
}

function playFilms() {
  const sight = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach(({ target }) => {
    sight.unobserve(target);
    play(target, { autoplay: true, compact: true, bare: true }).catch(lacking);
  }), { rootMargin: AHEAD });
  document.querySelectorAll(".card").forEach((card) => {
    const film = card.querySelector(".film");
    sight.observe(film);
    ["pointerenter", "focusin"].forEach((kind) => card.addEventListener(kind, () => film.querySelector(".stage").stage?.again()));
  });
}

follow();
if (hero) {
  followTheme(hero);
  play(hero, { autoplay: true, loop: true, compact: window.innerWidth < NARROW })
    .then(() => { document.documentElement.dataset.ready = ""; })
    .catch(lacking);
  playFilms();
}
