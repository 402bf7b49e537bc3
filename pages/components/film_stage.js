// A film on the stage: the data of a page of its own, or of another page that was fetched.

import { keep } from "./stage_store.js";
import { openedPart } from "./film_parts.js";
import stage from "./stage.js";
import { unpack } from "./packed.js";

// partOf: returns a part of the page that carries it. playing: of `autoplay`, `loop`, `compact` and `bare` what differs
// from the film. at: tells films on one page apart. Returns the film.
export async function playFilm(box, partOf, playing = {}, at = "") {
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
