// The page of a published run: the app's own stage, and what is said of the run, while its files grow.

import { FORM, STATE, reading } from "./live_run.js";
import { element } from "./dom.js";
import { followTheme, goToStep, tableOf } from "./film_page.js";
import stage from "./stage.js";

const SILENT = 45; // seconds without a word until it is said; a publisher writes every 10
const OVER = 60000; // milliseconds between two looks at a run that is over
const [RETRY, MAX_RETRY] = [2000, 60000];

const isRecorded = "recorded" in document.documentElement.dataset; // it plays by itself, and never goes on
const box = document.getElementById("stage");
const part = (name) => document.getElementById(name);
const { live, read, catchUp, data, choose } = reading("", { described: describe, told: tellMoments, shown: show });
let failures = 0;

// Another release published it: its page is loaded, once.
function renew({ form, page }) {
  if (form === FORM && page === document.querySelector("meta[name=page]").content) return;
  if (sessionStorage.getItem("page") === page) return;
  sessionStorage.setItem("page", page);
  window.location.reload();
}

// ---- what is shown

function show() {
  const chosen = (_name, view) => choose(view).catch(() => turn());
  stage({ data: [data({ autoplay: isRecorded })], parentElement: box, setTriggerValue: chosen });
}

function describe() {
  const { look } = live;
  document.documentElement.lang = look.language;
  document.title = look.title;
  part("title").textContent = look.title;
  part("about").textContent = look.about;
  part("theme").textContent = look.words.theme;
  part("happened-title").textContent = look.words.happened;
  part("settings-title").textContent = look.words.settings;
  part("tables").replaceChildren(...look.tables.map(tableOf));
  part("settings").hidden = false;
}

function tellMoments() {
  const { moments } = live.now.stage;
  part("moments").replaceChildren(...moments.map(([step, words]) => {
    const item = element("li");
    const said = live.look.words.step.replace("{step}", step.toLocaleString("en"));
    const button = element("button", "small", said);
    button.type = "button";
    button.addEventListener("click", () => goToStep(box, step));
    item.append(element("b", "", said), button, element("span", "", words));
    return item;
  }));
  part("happened").hidden = !moments.length;
}

function span(seconds, words) {
  const whole = Math.round(seconds);
  return whole < 120 ? words.seconds.replace("{n}", whole) : words.minutes.replace("{n}", Math.round(whole / 60));
}

// The state of the run, and beside it what keeps the page from being up to date.
function say(problem) {
  const { run, look } = live;
  const words = look?.words;
  const silent = (performance.now() - live.heard) / 1000;
  const isSilent = run?.live && silent > SILENT;
  const said = problem && words ? words[problem] : isSilent && words ? words.silent.replace("{time}", span(silent, words)) : "";
  if (part("said").textContent !== said) part("said").textContent = said;
  const state = words && run ? words.states[run.state] : "";
  if (part("state").textContent !== state) part("state").textContent = state;
  part("state").dataset.live = String(Boolean(run?.live && !isSilent && !problem));
  part("problem").hidden = Boolean(words) || !problem;
}

// ---- asking again and again

let [timer, isBusy] = [null, false];

async function turn() {
  if (isBusy) return;
  isBusy = true;
  clearTimeout(timer);
  let problem = null;
  try {
    await read();
    renew(live.run);
    await catchUp();
    failures = 0;
    document.documentElement.dataset.ready = "";
  } catch (error) {
    failures += 1;
    problem = error.file === STATE && [404, 410].includes(error.status) ? "gone" : "unreachable";
    if (!(error instanceof TypeError) && !error.status && error.name !== "TimeoutError") console.warn(error);
  }
  say(problem);
  isBusy = false;
  if (isRecorded && !failures) return;
  if (!document.hidden) timer = setTimeout(turn, pause() * (0.9 + 0.2 * Math.random()));
}

function pause() {
  if (failures) return Math.min(MAX_RETRY, RETRY * 2 ** (failures - 1));
  return live.run.live ? 1000 * live.run.every : OVER;
}

// A tab that nobody sees asks for nothing.
document.addEventListener("visibilitychange", () => { if (document.hidden) clearTimeout(timer); else turn(); });
window.addEventListener("online", turn);
followTheme(box);
turn();
