// A published run: files that anybody's web server hands out, shown on the app's own stage while they
// grow. tfm_core/publish/folder.py says what the files are.

import { begun, fold, linesOf } from "./live_lines.js";
import { changing, grown, lasting, lastingJson } from "./live_files.js";
import { element } from "./dom.js";
import { followTheme, goToStep, tableOf } from "./film_page.js";
import { keep } from "./stage_store.js";
import stage from "./stage.js";
import { unpack } from "./packed.js";

const FORM = 1;
const SILENT = 45; // seconds without a word until it is said; a publisher writes every 10
const OVER = 60000; // milliseconds between two looks at a run that is over
const [RETRY, RETRY_MOST] = [2000, 60000];
const AT_ONCE = 4; // files that are asked for at the same time

const box = document.getElementById("stage");
const part = (name) => document.getElementById(name);
const STATE = "run.json";
const ask = changing(STATE);
const live = { run: null, heard: performance.now(), curves: begun(), read: 0, frames: new Map(), chosen: null, failures: 0 };

// ---- what is read

function spoken(languages) {
  const wanted = [new URLSearchParams(window.location.search).get("lang"), ...navigator.languages];
  const known = wanted.map((name) => languages.find((one) => name && name.split("-")[0] === one.split(/[-_]/)[0]));
  return known.find(Boolean) ?? languages[0];
}

async function read() {
  const { values, age } = await ask();
  if (!values) return;
  live.run = values;
  live.heard = performance.now() - 1000 * Math.max(0, age ?? 0);
}

// Fetch what run.json speaks of and is not here yet. What fails is asked for again the next time.
async function catchUp() {
  const { run } = live;
  if (run.form !== FORM || run.page !== document.querySelector("meta[name=page]").content) renew(run.page);
  const language = spoken(run.languages);
  if (live.look?.name !== `${run.look}-${language}`) {
    live.look = { ...await lastingJson(`look-${run.look}-${language}.json`), name: `${run.look}-${language}`, language };
    live.chosen ??= live.look.first;
    describe();
  }
  if (live.now?.name !== `${run.now}-${language}`) {
    live.now = { ...await lastingJson(`now-${run.now}-${language}.json`), name: `${run.now}-${language}` };
    tellMoments();
  }
  if (live.log !== run.log.name) Object.assign(live, { log: run.log.name, read: 0, curves: begun() });
  if (live.read < run.log.bytes) {
    const bytes = await grown(live.log, live.read, run.log.bytes);
    fold(live.curves, bytes);
    live.read += bytes.length;
  }
  show();
  await readFrames();
}

// Another release published it: its page is loaded, once.
function renew(page) {
  if (sessionStorage.getItem("page") === page) return;
  sessionStorage.setItem("page", page);
  window.location.reload();
}

const fileOf = ([step, tag], [kind, example]) => `${String(step).padStart(8, "0")}-${tag}-${kind}-${example}.bin`;
const viewName = () => (live.chosen ?? []).join(" ");

// The snapshots for what is chosen: the newest at once, then the others, so that it can be played.
async function readFrames() {
  const { chosen } = live;
  if (!chosen) return;
  const files = [...live.curves.snapshots].sort(([a], [b]) => a - b).map((one) => fileOf(one, chosen));
  [...live.frames.keys()].filter((name) => !files.includes(name)).forEach((name) => live.frames.delete(name));
  if (live.shown === files.join()) return;
  const lacking = () => files.filter((name) => !live.frames.has(name)).reverse();
  if (lacking().length > AT_ONCE && live.run.reel) await readReel(files, chosen);
  const problems = [];
  const readOne = async (name) => {
    try { live.frames.set(name, unpack(await lasting(name))); } catch (error) { problems.push(error); }
  };
  const missing = lacking();
  for (let at = 0; at < missing.length && live.chosen === chosen; at += AT_ONCE) {
    await Promise.all(missing.slice(at, at + AT_ONCE).map(readOne));
    if (!at && missing.length > AT_ONCE && live.chosen === chosen) assemble(files);
  }
  if (live.chosen !== chosen) return;
  assemble(files);
  if (problems.length) throw problems[0];
  live.shown = files.join();
}

// All snapshots that there were when it was made; without it they come one by one.
async function readReel(files, chosen) {
  let bytes;
  try { bytes = await lasting(`reel-${live.run.reel}-${chosen.join("-")}.bin`); } catch { return; }
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < bytes.length;) {
    const length = view.getUint32(at, true);
    const frame = unpack(bytes.subarray(at + 4, at + 4 + length));
    const name = fileOf([frame.step, frame.tag], chosen);
    if (files.includes(name)) live.frames.set(name, frame);
    at += 4 + length;
  }
}

// One view of all snapshots that are here, as the stage keeps it.
function assemble(files) {
  const { look, chosen } = live;
  const frames = files.map((name) => live.frames.get(name)).filter(Boolean);
  const still = look.views.find(({ attention, example }) => attention === chosen[0] && example === chosen[1]);
  if (!frames.length || !still) return;
  const { shape, block } = frames[frames.length - 1];
  const alike = frames.filter((frame) => String(frame.shape) === String(shape));
  const values = new Float32Array(alike.reduce((sum, frame) => sum + frame.values.length, 0));
  alike.reduce((at, frame) => { values.set(frame.values, at); return at + frame.values.length; }, 0);
  keep({
    ...look.shared,
    ...still,
    name: viewName(),
    frames: alike.map(({ step, labels, answers }) => ({ step, labels: labels[look.language], answers })),
    n_snapshots: alike.length,
    shape,
    block,
    values,
  });
  show();
}

// ---- what is shown

function show() {
  const { run, look, now } = live;
  const data = {
    ...look.stage,
    ...now.stage,
    name: viewName(),
    lines: linesOf(live.curves, look.colours, now.stage.wholes),
    now: run.step,
    total: run.total,
    live: run.live,
    has_maps: live.curves.snapshots.size > 0,
    autoplay: false,
    loop: false,
    compact: false,
  };
  stage({ data: [data], parentElement: box, setTriggerValue: (_name, chosen) => choose(chosen) });
}

function choose(chosen) {
  if (!live.look.views.some(({ attention, example }) => attention === chosen[0] && example === chosen[1])) return;
  live.chosen = chosen;
  readFrames().catch(() => turn());
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
    await catchUp();
    live.failures = 0;
    document.documentElement.dataset.ready = "";
  } catch (error) {
    live.failures += 1;
    problem = error.file === STATE && [404, 410].includes(error.status) ? "gone" : "unreachable";
    if (!(error instanceof TypeError) && !error.status && error.name !== "TimeoutError") console.warn(error);
  }
  say(problem);
  isBusy = false;
  if (!document.hidden) timer = setTimeout(turn, pause() * (0.9 + 0.2 * Math.random()));
}

function pause() {
  if (live.failures) return Math.min(RETRY_MOST, RETRY * 2 ** (live.failures - 1));
  return live.run.live ? 1000 * live.run.every : OVER;
}

// A tab that nobody sees asks for nothing.
document.addEventListener("visibilitychange", () => { if (document.hidden) clearTimeout(timer); else turn(); });
window.addEventListener("online", turn);
followTheme(box);
turn();
