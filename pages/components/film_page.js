// A page that carries its run: the theme, paper, the parts in it, and its film on the stage.

import { unpack } from "./cells.js";
import { bytes } from "./dom.js";
import stage from "./stage.js";
import { settle } from "./stage.js";
import { keep } from "./stage_time.js";

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

// ---- the parts that a page carries: base64 in scripts that no browser runs, compressed by gzip

const ownPart = (name) => document.getElementById(`part-${name}`).textContent;

// partOf: returns a part by its name, as the page contains it.
export async function openedPart(name, partOf = ownPart) {
  const stream = new Blob([bytes(partOf(name))]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// A film on the stage: the data of this page, or of another page that was fetched.
// partOf: returns a part of the page that carries it. playing: of `autoplay`, `loop`, `compact` and `bare` what differs
// from the film. at: tells films on one page apart. Returns the film.
export async function playFilm(box, partOf = ownPart, playing = {}, at = "") {
  const film = JSON.parse(new TextDecoder().decode(await openedPart("film", partOf)));
  const data = { ...film.stage, ...playing, name: `${at}${film.stage.name}` };
  async function show([kind, example]) {
    const number = film.views.findIndex((view) => view.kind === kind && view.example === example);
    if (number >= 0) {
      data.name = `${at}${film.views[number].name}`;
      keep({ ...unpack(await openedPart(`view-${number}`, partOf)), name: data.name });
    }
    stage({ data: [data], parentElement: box, setTriggerValue: (_name, chosen) => show(chosen) });
  }
  await show(film.first);
  return film;
}
