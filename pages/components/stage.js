// One stage: curves, answers and heads stand at one place of the training, which the scrubber moves.
//
// Nothing here asks the server but the choice of another kind of attention or another example.

import { announcer, news } from "./announcing.js";
import { abgr, colours, rgb, visible } from "./cells.js";
import { openTables } from "./data_table.js";
import { actButton, dress, element, filled, isCalm, isDark, paper, showPlaying, slider, whole } from "./dom.js";
import { across, buildCurves, compactNumber, curveTables, drawCurves, drawKey, instrument, lastStep, nameCurves, percent, pitch, range, said, stepFrom, stepTicks } from "./stage_curves.js";
import { buildHeads, enlarge, fillHeads, fitHeads, glossOf, paintHeads } from "./stage_heads.js";
import { ARRIVED, frameAt, isBetween, kept, momentAt, nextMoment, pace, positionOf, stepAt, valueAt, weightsAt } from "./stage_time.js";

const HOLD = 1800; // milliseconds at the end before it begins again
const READ = 1300; // at a snapshot at which something happened
const ARRIVE = 600; // in which a new snapshot moves in
const LOOK = 500; // between two looks at the colours of the page

const stepOfTotal = (template, step, total) => filled(template, { step: whole(step), total: whole(total) });

const stepsOf = (state) => state.view?.frames.map((frame) => frame.step) ?? [];
const end = (state) => Math.max(0, (state.view?.frames.length ?? 1) - 1);

const isNewest = (state) => !state.view?.frames.length || (state.follows && !state.playing);

// The step that everything says: that of the snapshot that is shown, or the newest while it is followed.
function stepOf(state) {
  const steps = stepsOf(state);
  if (isNewest(state)) return Math.max(state.data.now, steps[steps.length - 1] ?? 0);
  return steps[frameAt(state.shown, steps.length)];
}

// Where the play head stands, which moves from snapshot to snapshot.
const headOf = (state) => (isNewest(state) ? stepOf(state) : stepAt(stepsOf(state), state.shown));

const button = (className, text, label, act) => actButton(`small ${className}`, text, act, label);

function toggle(label, help, isOn, act) {
  const made = button("switch", label, label, () => {
    const on = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", String(on));
    act(on);
  });
  made.title = help;
  made.setAttribute("aria-pressed", String(isOn));
  return made;
}

function build(root, state) {
  const { words } = state.data;
  root.textContent = "";
  const figures = element("div", "figures");
  const [curves, heads, answers] = [buildCurves(state), buildHeads(state), buildAnswers(state)];
  Object.assign(state, { curves, heads, answers });
  curves.box.append(element(
    "span", "switches",
    toggle(words.log_steps, words.log_steps_help, state.logSteps, (on) => { state.logSteps = on; state.ask(true); }),
    toggle(words.log_loss, words.log_loss_help, state.logLoss, (on) => { state.logLoss = on; state.ask(true); }),
    toggle(words.sound, words.sound_help, false, (on) => { state.sound?.end(); state.sound = on ? instrument() : null; sound(state); }),
    button("numbers", words.table, words.table, () => openTables(root, words.curves, curveTables(state), words)),
  ));
  if (state.data.compact) curves.box.prepend(figures); // its only chart needs no line of its own
  const glosses = toggle(words.glosses, words.glosses_help, false, (on) => {
    state.glossed = on;
    state.send("gloss", on);
    fitAnew(state);
  });
  answers.bar.append(glosses);
  const panels = element("div", "panels", curves.box, heads.box, answers.box, heads.large);
  const empty = element("p", "empty", words.waits);
  const caption = element("p", "moment");
  const play = button("play", "▶", words.play, () => (state.playing ? pause(state) : start(state)));
  const back = button("back", "‹", words.back, () => move(state, -1));
  const next = button("next", "›", words.next, () => move(state, 1));
  const scrubber = slider(words.scrub, (share) => scrub(state, positionUnder(state, share)), { max: 1, step: "any" });
  const scale = element("div", "scale"); // the slider's steps stand where the curves have theirs
  const track = element("div", "track", scrubber, scale);
  const where = element("span", "where");
  const follow = button("follow", "⇥", words.follow, () => { pauseQuietly(state); state.follows = true; place(state, end(state)); });
  follow.prepend(element("span", "", `${words.follow} `));
  follow.hidden = true;
  const smooth = toggle(words.smooth, words.smooth_help, state.smooth, (on) => { state.smooth = on; place(state, state.position); });
  smooth.classList.add("smooth");
  const between = element("span", "between", words.between);
  const bar = element("div", "bar", play, back, track, next, where, follow, smooth);
  if (!state.data.compact) root.append(figures);
  root.append(panels, empty, element("div", "foot", caption, between, bar), state.announcer.region);
  Object.assign(state, { parts: { figures, panels, caption, play, back, next, slider: scrubber, scale, where, follow, between, empty, glosses } });
}

// ---- moving

function place(state, position) {
  state.position = Math.max(0, Math.min(end(state), position));
  state.shown = state.smooth ? state.position : frameAt(state.position, end(state) + 1);
  state.ask();
}

// The position under a place of the slider, from 0 to 1.
function positionUnder(state, share) {
  return share <= 0 ? 0 : positionOf(stepsOf(state), stepFrom(share, lastStep(state), state.logSteps));
}

function scrub(state, position) {
  pauseQuietly(state);
  state.follows = position >= end(state) - 1e-3;
  place(state, position);
}

function move(state, by) {
  const from = by > 0 ? Math.floor(state.position + 1e-3) : Math.ceil(state.position - 1e-3);
  scrub(state, from + by);
}

function pauseQuietly(state) {
  state.playing = false;
  state.arriving = null;
}

function pause(state) {
  pauseQuietly(state);
  state.announcer.hush();
  state.ask();
}

function start(state) {
  if (!end(state)) return;
  state.playing = true;
  state.arriving = null;
  state.follows = false;
  state.before = null;
  state.held = null;
  if (state.position >= end(state) - 1e-3) state.position = 0;
  readAt(state, frameAt(state.position, end(state) + 1));
  place(state, state.position);
}

// Stay where something happened until its sentence can have been read.
function readAt(state, index) {
  if (nextMoment(state.data.moments, stepsOf(state), index - 1, index) === index) state.reading = READ;
}

// One frame of the browser: move on, if it plays, then draw.
function turn(state, now) {
  state.request = null;
  if (state.playing && state.isSeen) {
    const passed = Math.min(100, now - (state.before ?? now));
    state.before = now;
    if (state.position >= end(state)) {
      state.held ??= now;
      if (!state.data.loop) { state.playing = false; state.follows = true; }
      else if (now - state.held > HOLD) { state.held = null; state.position = 0; readAt(state, 0); }
    } else if (state.reading > 0) state.reading -= passed;
    else {
      const to = Math.min(end(state), state.position + passed / pace(end(state) + 1));
      const at = nextMoment(state.data.moments, stepsOf(state), state.position, to);
      state.position = at ?? to;
      if (at !== null && at < end(state)) state.reading = READ;
    }
    place(state, state.position);
  } else if (state.arriving) {
    const share = Math.min(1, (now - state.arriving.since) / ARRIVE);
    place(state, state.arriving.from + (end(state) - state.arriving.from) * share);
    if (share === 1) state.arriving = null;
  }
  draw(state);
  if ((state.playing && state.isSeen) || state.arriving) state.ask();
}

// The loss at the step that is shown, as a tone.
function sound(state) {
  if (!state.sound) return;
  const step = stepOf(state);
  const line = state.data.lines.find(({ quantity, role }) => quantity === "loss" && role === "training");
  const at = line && valueAt(line, step);
  if (at) state.sound.play(pitch(at.value, ...range(line)));
  state.root.dataset.heard = at?.step ?? "";
}

// What happened at the snapshot that a replay has come to.
function tellReplay(state, words) {
  if (state.playing && !state.data.compact && state.told !== words) state.announcer.say(words);
  state.told = words;
}

// ---- drawing

function look(state) {
  const { root } = state;
  const style = getComputedStyle(root);
  const of = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  const seen = [isDark(root), of("--st-text-color", "#222"), of("--st-border-color", "#ddd"), of("--st-font", "sans-serif"), paper(root)];
  if (String(seen) === String(state.seen)) return false;
  state.seen = seen;
  [state.dark, state.ink, state.line, state.font, state.paper] = seen;
  return true;
}

function recolour(state) {
  if (!look(state)) return;
  if (state.view) tint(state);
  state.ask(true);
}

function tint(state) {
  const theme = state.dark ? "dark" : "light";
  state.table = colours(state.view.scales[theme]);
  state.maskedInk = abgr(rgb(state.view.masked[theme]));
}

// Draw all of it in the room that its words now leave.
function fitAnew(state) {
  readGlosses(state);
  if (!state.view?.frames.length) return;
  showAnswers(state, state.view.frames[frameAt(state.shown, end(state) + 1)]);
  fitHeads(state);
  state.ask(true);
}

// Whether tokens carry glosses: as was chosen here, else as the page says, else as the browser's language asks.
function readGlosses(state) {
  const { view, data, parts: { glosses } } = state;
  glosses.hidden = !view?.glosses;
  const isForeign = !navigator.language.toLowerCase().startsWith(view?.glosses?.language);
  state.isGlossed = Boolean(view?.glosses) && (state.glossed ?? data.glossed ?? isForeign);
  glosses.setAttribute("aria-pressed", String(state.isGlossed));
}

function draw(state) {
  const { view, parts } = state;
  const isStale = state.isStale;
  state.isStale = false;
  const step = stepOf(state);
  const hasFrames = Boolean(view?.frames.length);
  parts.empty.hidden = hasFrames;
  state.root.classList.toggle("empty-stage", !hasFrames);
  let frame = null;
  if (hasFrames) {
    frame = view.frames[frameAt(state.shown, view.frames.length)];
    state.isMixed = isBetween(state.shown);
    const key = `${state.shown} ${state.word} ${state.heads.first}`;
    if (isStale || state.painted !== key) {
      state.painted = key;
      if (state.isMixed && !state.room) state.room = new Float32Array(view.shape.reduce((product, n) => product * n, 1));
      state.weights = weightsAt(view, state.shown, state.room);
      paintHeads(state, frame);
    }
    showAnswers(state, frame);
  }
  drawCurves(state, headOf(state), isStale);
  showFigures(state, step);
  const words = captionOf(state, step, frame);
  showBar(state, step, hasFrames, words);
  if (parts.caption.textContent !== words) parts.caption.textContent = words;
  tellReplay(state, words);
  if (state.heard !== step) { state.heard = step; sound(state); }
}

// What happened at the snapshot that is shown, unless something was measured since; else the newest accuracy.
function captionOf({ data }, step, frame) {
  const { lines, moments, words } = data;
  const newest = (role) => {
    const line = lines.find((one) => one.quantity === "accuracy" && one.role === role);
    return line ? valueAt(line, step) : null;
  };
  const [unseen, seen] = [newest("validation"), newest("training")];
  const moment = momentAt(moments, step);
  if (moment && moment[0] === (frame?.step ?? 0) && !(unseen?.step > moment[0])) return moment[1];
  const found = unseen ?? seen;
  if (!found) return "";
  const name = unseen ? words.validation_accuracy : words.training_accuracy;
  return filled(words.measured, { name, value: percent(found.value) });
}

function showBar(state, step, hasFrames, caption) {
  const { data, parts } = state;
  const { words } = data;
  const last = end(state);
  const share = state.position <= 0 && last ? 0 : across(headOf(state), lastStep(state), state.logSteps);
  if (Number(parts.slider.value) !== share) parts.slider.value = share;
  parts.slider.dataset.snapshots = hasFrames ? last + 1 : 0;
  showScale(state);
  const spoken = `${words.step} ${whole(step)}. ${caption}`;
  if (parts.slider.getAttribute("aria-valuetext") !== spoken) parts.slider.setAttribute("aria-valuetext", spoken);
  parts.slider.disabled = !last;
  parts.play.disabled = !last;
  parts.back.disabled = !hasFrames || state.position <= 0;
  parts.next.disabled = !hasFrames || state.position >= last;
  showPlaying(parts.play, state.playing, words);
  const where = stepOfTotal(words.step_of, step, Math.max(data.total, data.now));
  if (parts.where.textContent !== where) parts.where.textContent = where;
  parts.follow.hidden = !(data.live && !state.follows);
  parts.between.classList.toggle("now", Boolean(state.isMixed));
}

// The steps below the slider, as below the curves.
function showScale(state) {
  const { parts: { scale }, logSteps } = state;
  const last = lastStep(state);
  if (scale.dataset.key === `${last} ${logSteps}`) return;
  scale.dataset.key = `${last} ${logSteps}`;
  const ticks = stepTicks(last, logSteps).map((step) => {
    const tick = element("span", "", compactNumber(step));
    tick.style.setProperty("--share", across(step, last, logSteps));
    return tick;
  });
  scale.replaceChildren(...ticks);
}

// The metrics as one line: each the newest that was known at the step.
function showFigures(state, step) {
  const { data: { lines, words, known, compact }, parts: { figures } } = state;
  const found = (quantity, role) => lines.find((line) => line.quantity === quantity && line.role === role);
  const wanted = compact ? known.filter(({ quantity, role }) => quantity === "accuracy" && role !== "test") : known;
  const shown = wanted.map((one) => found(one.quantity, one.role) ?? { ...one, steps: [], values: [] });
  const key = shown.map(({ quantity, role }) => quantity + role).join();
  const isNew = figures.dataset.key !== key;
  if (isNew) {
    figures.dataset.key = key;
    figures.textContent = "";
    figures.classList.toggle("long", shown.some((line) => line.role === "average_whole"));
    figures.parts = shown.map((line, i) => {
      if (line.quantity !== shown[i - 1]?.quantity) figures.append(element("b", "", words[line.quantity]));
      const part = element("span", "figure");
      part.append(element("canvas"), `${words[line.role]} `, element("b"));
      figures.append(part);
      return part;
    });
  }
  shown.forEach((line, i) => {
    const at = valueAt(line, step);
    const value = at ? said(line.quantity, at.value) : "–";
    const part = figures.parts[i];
    drawKey(part.firstChild, line);
    if (part.lastChild.textContent !== value) part.lastChild.textContent = value;
    part.title = at ? `${words.step} ${whole(at.step)}` : "";
  });
  if (isNew && figures.scrollHeight > figures.clientHeight + 4) figures.classList.add("long"); // words of this language
}

// For paper: at the end, in the room and the colours that there are now, drawn before this returns.
export function settle(root) {
  const state = root.stage;
  pauseQuietly(state);
  place(state, end(state));
  look(state);
  if (state.view) tint(state);
  fitHeads(state);
  state.isStale = true;
  draw(state);
}

// ---- the model's answers to the same examples: token by token, or a picture with its likeliest classes

function buildAnswers(state) {
  const { words } = state.data;
  const bar = element("div", "answers-bar", element("h2", "", words.answers));
  const rows = element("div", "rows");
  rows.addEventListener("click", (event) => {
    const row = event.target.closest("[data-example]");
    if (row && !isWithout(state.view, Number(row.dataset.example))) state.choose(state.view.attention, Number(row.dataset.example));
  });
  return { box: element("div", "answers", bar, rows), bar, rows, built: null };
}

// What a prediction is, token by token: right, wrong, or missing at its end.
export function marked(tokens, truth) {
  const found = [];
  for (let i = 0; i < Math.max(tokens.length, truth.length); i += 1) {
    if (i >= tokens.length) found.push({ token: truth[i], verdict: "missing" });
    else found.push({ token: tokens[i], verdict: tokens[i] === truth[i] ? "right" : "wrong" });
  }
  return found;
}

// Of large maps a run keeps those of its first examples alone.
const isWithout = (view, n) => view.surface !== "none" && n >= view.n_attended;
const letters = (tokens) => tokens.length > 1 && tokens.every((token) => token.length === 1);

function buildRows(state) {
  const { view, answers } = state;
  const { words } = state.data;
  answers.rows.textContent = "";
  const isPictures = view.examples.every(({ picture, tokens }) => picture && !tokens.length);
  answers.rows.classList.toggle("thumbs", isPictures);
  answers.rows.classList.toggle("pictured", !isPictures && view.examples.some(({ picture }) => picture));
  answers.parts = view.examples.map((example, n) => {
    const image = example.picture && Object.assign(element("img"), { src: example.picture, alt: example.truth });
    const source = element("span", "source", example.source, image);
    if (view.language) source.lang = view.language;
    const answer = element("span", "answer");
    const sign = element("span", "sign");
    const row = element("button", "row", source, answer, sign, element("span", "truth", `${words.truth}: ${example.truth}`));
    row.dataset.example = n;
    if (isWithout(view, n)) dress(row, { title: words.not_kept, "aria-disabled": "true" });
    answers.rows.append(row);
    return { row, answer, sign };
  });
}

function showAnswers(state, frame) {
  const { view, answers } = state;
  const { words } = state.data;
  const key = `${view.name} ${view.examples.length}`;
  if (answers.built !== key) { buildRows(state); answers.built = key; answers.shown = null; }
  if (answers.shown === frame && answers.chosen === state.example && answers.glossed === state.isGlossed) return;
  Object.assign(answers, { shown: frame, chosen: state.example, glossed: state.isGlossed });
  view.examples.forEach((example, n) => {
    const { row, answer, sign } = answers.parts[n];
    const said = frame.answers[n];
    row.setAttribute("aria-pressed", String(n === state.example));
    const verdict = said.right === null ? "" : said.right ? "right" : "wrong";
    row.dataset.verdict = verdict;
    sign.textContent = { right: "✓", wrong: "✗" }[verdict] ?? "";
    sign.setAttribute("aria-label", words[verdict] ?? "");
    answer.textContent = "";
    if (said.classes.length) {
      said.classes.forEach(([name, share], place) => {
        if (place && n !== state.example) return;
        const told = element("b", name === example.truth ? "true" : "", name);
        answer.append(element("span", "bar", { "--share": share }, told, element("small", "", percent(share))));
      });
      return;
    }
    const parts = example.tokens.length ? marked(said.tokens, example.tokens)
      : said.tokens.map((token) => ({ token, verdict: "" }));
    if (!parts.length) answer.append(element("i", "", words.nothing));
    answer.classList.toggle("letters", letters(said.tokens));
    parts.forEach(({ token, verdict: its }, i) => {
      const part = element("span", `t ${its}`, visible(token));
      const hint = its ? [words[its]] : [];
      if (its === "wrong" && i < example.tokens.length) hint.push(`${words.truth}: ${example.tokens[i]}`);
      if (i < said.sure.length && its !== "missing") hint.push(`${words.probability} ${percent(said.sure[i])}`);
      part.title = hint.join(", ");
      const gloss = glossOf(state, token);
      if (state.isGlossed) part.append(element("small", "", gloss || "\u00a0", { lang: view.language }));
      answer.append(part);
    });
  });
}

// ---- what comes from the server

function take(state) {
  const view = kept(state.data.name);
  if (!view || view === state.view) return;
  const before = state.view;
  const stepBefore = before ? stepAt(stepsOf(state), state.position) : null;
  state.view = view;
  state.example = view.example;
  state.room = null;
  state.painted = null;
  tint(state);
  readGlosses(state);
  const last = end(state);
  if (!before) {
    const plays = state.data.autoplay && !isCalm();
    state.position = plays ? 0 : last;
    state.follows = !plays;
    if (plays && last) { state.playing = true; state.before = null; }
  } else if (!state.playing && state.follows) {
    const from = positionOf(stepsOf(state), stepBefore);
    if (from < last && state.smooth) state.arriving = { from, since: performance.now() };
    state.position = state.arriving ? from : last;
  } else state.position = positionOf(stepsOf(state), stepBefore);
  place(state, state.position);
  if (view.frames.length) showAnswers(state, view.frames[frameAt(state.shown, last + 1)]);
  fillHeads(state); // in the room that the answers leave
  state.ask(true);
}

function listen(root, state) {
  root.addEventListener("keydown", (event) => press(state, event));
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !state.heads.large.hidden) { enlarge(state, null); event.stopPropagation(); }
  });
}

// Space plays and pauses, the arrows go from snapshot to snapshot; lists and buttons keep their keys.
function press(state, event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
  const on = event.composedPath()[0];
  const tag = on.tagName;
  if (tag === "SELECT") return;
  if (event.key === " " && tag !== "BUTTON") {
    event.preventDefault();
    if (state.playing) pause(state); else start(state);
  } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    event.preventDefault();
    move(state, event.key === "ArrowLeft" ? -1 : 1);
  } else if (tag === "INPUT" && (event.key === "Home" || event.key === "End")) {
    event.preventDefault();
    scrub(state, event.key === "Home" ? 0 : end(state));
  }
}

function watch(root, state) {
  const arrived = ({ detail }) => { if (detail === state.data.name) take(state); };
  const pressed = (event) => { if (event.target === document.body && !state.data.compact) press(state, event); };
  window.addEventListener(ARRIVED, arrived);
  window.addEventListener("keydown", pressed);
  const sizes = new ResizeObserver(() => { fitHeads(state); state.ask(true); });
  [root, state.heads.room].forEach((part) => sizes.observe(part));
  const sight = new IntersectionObserver(([entry]) => { state.isSeen = entry.isIntersecting; state.before = null; state.ask(); });
  sight.observe(root);
  const looking = setInterval(() => recolour(state), LOOK);
  return () => {
    window.removeEventListener(ARRIVED, arrived);
    window.removeEventListener("keydown", pressed);
    sizes.disconnect();
    sight.disconnect();
    clearInterval(looking);
    cancelAnimationFrame(state.request);
    state.announcer.hush();
    state.sound?.end();
    Object.assign(state, { request: null, unwatch: null, sound: null });
  };
}

function begun(root, data) {
  const state = { root, data, position: 0, shown: 0, follows: true, playing: false, smooth: !isCalm(), logSteps: true, logLoss: false, isSeen: true, reading: 0, glossed: null, announcer: announcer() };
  state.ask = (isStale = false) => {
    state.isStale ||= isStale;
    state.request ??= requestAnimationFrame((now) => turn(state, now));
  };
  state.goToStep = (step) => { if (state.view) scrub(state, positionOf(stepsOf(state), step)); };
  state.again = () => { if (!state.playing && !isCalm()) start(state); };
  state.choose = (kind, example) => {
    if (!state.view || (kind === state.view.attention && example === state.example)) return;
    state.example = example;
    state.heads.box.setAttribute("aria-busy", String(kind !== state.view.attention));
    state.send("choose", [kind, example]);
    state.ask();
  };
  return state;
}

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".stage");
  const isNew = !root.stage;
  const state = root.stage ?? begun(root, data);
  root.stage = state;
  const before = isNew ? null : state.data;
  Object.assign(state, { data, send: setTriggerValue });
  root.classList.toggle("compact", data.compact);
  root.classList.toggle("alone", Boolean(data.alone));
  recolour(state);
  if (isNew) { build(root, state); listen(root, state); }
  if (data.paused) state.announcer.hush();
  state.announcer.say(news(before, data, stepOfTotal));
  nameCurves(state);
  state.unwatch ??= watch(root, state);
  take(state);
  if (data.glossed !== state.toldGlossed) { state.toldGlossed = data.glossed; state.glossed = null; fitAnew(state); }
  state.ask(true);
  return state.unwatch;
}
