// A button that resumes the tour which this browser has left, if any.

import { actButton } from "./dom.js";
import { kept, rememberedTour, TOUR } from "./kept.js";

// Where the tour was left: its name, the number of the stop and the run; null for anything else.
export function left(text, tours) {
  const value = rememberedTour(text);
  if (!value) return null;
  const { place, run } = value;
  const [name, number] = place.split(".");
  const n = Number(number);
  if (!Object.hasOwn(tours, name) || !Number.isInteger(n) || n < 1 || n > tours[name].count) return null;
  return { name, n, value: [place, run] };
}

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".tour-resume");
  const at = data.is_shown ? left(kept(TOUR), data.tours) : null;
  root.replaceChildren();
  if (!at) return;
  const { title, count } = data.tours[at.name];
  const words = data.label.replace("{n}", at.n).replace("{count}", count);
  root.append(actButton("", words, () => setTriggerValue("resume", at.value)));
  root.firstChild.title = title;
}
