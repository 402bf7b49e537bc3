// A published run as it is read, and told to the stage: files that anybody's web server hands out, while
// they grow. tfm_core/hosting/published/folder.py says what the files are.

import { begun, fold, linesOf } from "./live_lines.js";
import { changing, grown, lasting, lastingJson } from "./live_files.js";
import { keep } from "./stage_store.js";
import { unpack } from "./packed.js";

export const FORM = 1;
export const STATE = "run.json";
const AT_ONCE = 4; // files that are asked for at the same time

function spoken(languages) {
  const wanted = [new URLSearchParams(window.location.search).get("lang"), ...navigator.languages];
  const known = wanted.map((name) => languages.find((one) => name && name.split("-")[0] === one.split(/[-_]/)[0]));
  return known.find(Boolean) ?? languages[0];
}

const fileOf = ([step, tag], [kind, example]) => `${String(step).padStart(8, "0")}-${tag}-${kind}-${example}.bin`;

// at: what stands before the names of its files. described, told, shown: called when there is something new
// in what is said of the run, in what happened, in what the stage draws.
export function reading(at, { described = () => {}, told = () => {}, shown }) {
  const ask = changing(at + STATE);
  const live = { run: null, heard: performance.now(), curves: begun(), read: 0, frames: new Map(), chosen: null };
  const viewName = () => `${at}${(live.chosen ?? []).join(" ")}`;

  async function read() {
    const { values, age } = await ask();
    if (!values) return;
    live.run = values;
    live.heard = performance.now() - 1000 * Math.max(0, age ?? 0);
  }

  // Fetch what run.json speaks of and is not here yet. What fails is asked for again the next time.
  async function catchUp() {
    const { run } = live;
    const language = spoken(run.languages);
    if (live.look?.name !== `${run.look}-${language}`) {
      live.look = { ...await lastingJson(`${at}look-${run.look}-${language}.json`), name: `${run.look}-${language}`, language };
      live.chosen ??= live.look.first;
      described();
    }
    if (live.now?.name !== `${run.now}-${language}`) {
      live.now = { ...await lastingJson(`${at}now-${run.now}-${language}.json`), name: `${run.now}-${language}` };
      told();
    }
    if (live.log !== run.log.name) Object.assign(live, { log: run.log.name, read: 0, curves: begun() });
    if (live.read < run.log.bytes) {
      const bytes = await grown(at + live.log, live.read, run.log.bytes);
      fold(live.curves, bytes);
      live.read += bytes.length;
    }
    shown();
    await readFrames();
  }

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
      try { live.frames.set(name, unpack(await lasting(at + name))); } catch (error) { problems.push(error); }
    };
    const missing = lacking();
    for (let first = 0; first < missing.length && live.chosen === chosen; first += AT_ONCE) {
      await Promise.all(missing.slice(first, first + AT_ONCE).map(readOne));
      if (!first && missing.length > AT_ONCE && live.chosen === chosen) assemble(files);
    }
    if (live.chosen !== chosen) return;
    assemble(files);
    if (problems.length) throw problems[0];
    live.shown = files.join();
  }

  // All snapshots that there were when it was made; without it they come one by one.
  async function readReel(files, chosen) {
    let bytes;
    try { bytes = await lasting(`${at}reel-${live.run.reel}-${chosen.join("-")}.bin`); } catch { return; }
    const view = new DataView(bytes.buffer);
    for (let from = 0; from < bytes.length;) {
      const length = view.getUint32(from, true);
      const frame = unpack(bytes.subarray(from + 4, from + 4 + length));
      const name = fileOf([frame.step, frame.tag], chosen);
      if (files.includes(name)) live.frames.set(name, frame);
      from += 4 + length;
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
    alike.reduce((place, frame) => { values.set(frame.values, place); return place + frame.values.length; }, 0);
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
    shown();
  }

  // What the stage is told. playing: of `autoplay`, `loop`, `compact` and `bare` those that are so.
  function data(playing = {}) {
    const { run, look, now } = live;
    return {
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
      ...playing,
    };
  }

  // Show another kind of attention or example. Rejects where a file cannot be read.
  async function choose(chosen) {
    if (!live.look.views.some(({ attention, example }) => attention === chosen[0] && example === chosen[1])) return;
    live.chosen = chosen;
    await readFrames();
  }

  return { live, read, catchUp, data, choose };
}
