// One stage: curves, answers and heads stand at one place of the training, which the scrubber moves.
//
// Nothing here asks the server but the choice of another kind of attention or another example.

import { announcer, news } from "./announcing.js";
import { abgr, colours, rgb, visible } from "./cells.js";
import { openTables } from "./data_table.js";
import { actButton, dress, element, filled, isCalm, isDark, paper, whole } from "./dom.js";
import { Player, isBetween, positionOf, stepAt, weightsAt } from "./player.js";
import { across, buildCurves, compactNumber, curveTables, drawCurves, drawKey, instrument, lastStep, nameCurves, percent, pitch, range, said, stepFrom, stepTicks } from "./stage_curves.js";
import { buildHeads, enlarge, fillHeads, fitHeads, glossOf, paintHeads } from "./stage_heads.js";
import { ARRIVED, kept, momentAt, valueAt } from "./stage_time.js";

const READ = 1300; // milliseconds to stay at a snapshot at which something happened
const LOOK = 500; // between two looks at the colours of the page

const stepOfTotal = (template, step, total) => filled(template, { step: whole(step), total: whole(total) });

const stepsOf = (state) => state.view?.frames.map((frame) => frame.step) ?? [];

const isNewest = ({ view, player }) => !view?.frames.length || (player.follows && !player.playing);

// The step that everything says: that of the snapshot that is shown, or the newest while it is followed.
function stepOf(state) {
  const steps = stepsOf(state);
  if (isNewest(state)) return Math.max(state.data.now, steps[steps.length - 1] ?? 0);
  return steps[state.player.frame];
}

// Where the play head stands, which moves from snapshot to snapshot.
const headOf = (state) => (isNewest(state) ? stepOf(state) : stepAt(stepsOf(state), state.player.shown));

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
  const { player } = state;
  const scale = element("div", "scale"); // the slider's steps stand where the curves have theirs
  const track = element("div", "track", player.slider, scale);
  const where = element("span", "where");
  const follow = button("follow", "⇥", words.follow, () => player.scrub(player.last));
  follow.prepend(element("span", "", `${words.follow} `));
  follow.hidden = true;
  const smooth = toggle(words.smooth, words.smooth_help, player.smooth, (on) => { player.smooth = on; player.moved(); });
  smooth.classList.add("smooth");
  const between = element("span", "between", words.between);
  const bar = element("div", "bar", player.play, player.back, track, player.next, where, follow, smooth);
  if (!state.data.compact) root.append(figures);
  root.append(panels, empty, element("div", "foot", caption, between, bar), state.announcer.region);
  Object.assign(state, { parts: { figures, panels, caption, scale, where, follow, between, empty, glosses } });
}

// The position under a place of the slider, from 0 to 1.
function positionUnder(state, share) {
  return share <= 0 ? 0 : positionOf(stepsOf(state), stepFrom(share, lastStep(state), state.logSteps));
}

// Something happened at a snapshot: its sentence can be read.
const readAt = ({ view, data }, at) => (data.moments.some(([step]) => step === view.frames[at].step) ? READ : 0);

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
  if (state.player.playing && !state.data.compact && state.told !== words) state.announcer.say(words);
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
  showAnswers(state, state.view.frames[state.player.frame]);
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
  state.request = null;
  const { view, parts, player } = state;
  const isStale = state.isStale;
  state.isStale = false;
  const step = stepOf(state);
  const hasFrames = Boolean(view?.frames.length);
  parts.empty.hidden = hasFrames;
  state.root.classList.toggle("empty-stage", !hasFrames);
  let frame = null;
  if (hasFrames) {
    frame = view.frames[player.frame];
    state.isMixed = isBetween(player.shown);
    const key = `${player.shown} ${state.word} ${state.heads.first}`;
    if (isStale || state.painted !== key) {
      state.painted = key;
      state.weights = weightsAt(view, player.shown);
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
  const { data, parts, player } = state;
  const { words } = data;
  player.draw(player.position <= 0 && player.last ? 0 : across(headOf(state), lastStep(state), state.logSteps));
  player.slider.dataset.snapshots = hasFrames ? player.count : 0;
  showScale(state);
  const spoken = `${words.step} ${whole(step)}. ${caption}`;
  if (player.slider.getAttribute("aria-valuetext") !== spoken) player.slider.setAttribute("aria-valuetext", spoken);
  const where = stepOfTotal(words.step_of, step, Math.max(data.total, data.now));
  if (parts.where.textContent !== where) parts.where.textContent = where;
  parts.follow.hidden = !(data.live && !player.follows);
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
  state.player.stop();
  state.player.place(state.player.last);
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
  const { player, view: before } = state;
  const stepBefore = before ? stepAt(stepsOf(state), player.position) : null;
  state.view = view;
  state.example = view.example;
  state.painted = null;
  tint(state);
  readGlosses(state);
  player.count = view.frames.length;
  const from = before ? positionOf(stepsOf(state), stepBefore) : 0;
  if (!before && state.data.autoplay && !isCalm()) player.start();
  else if (player.playing || !player.follows) player.place(from);
  else if (before && from < player.last && player.smooth) player.arrive(from);
  else player.place(player.last);
  if (view.frames.length) showAnswers(state, view.frames[player.frame]);
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
    state.player.toggle();
  } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    event.preventDefault();
    state.player.move(event.key === "ArrowLeft" ? -1 : 1);
  } else if (tag === "INPUT" && (event.key === "Home" || event.key === "End")) {
    event.preventDefault();
    state.player.scrub(event.key === "Home" ? 0 : state.player.last);
  }
}

function watch(root, state) {
  const arrived = ({ detail }) => { if (detail === state.data.name) take(state); };
  const pressed = (event) => { if (event.target === document.body && !state.data.compact) press(state, event); };
  window.addEventListener(ARRIVED, arrived);
  window.addEventListener("keydown", pressed);
  const sizes = new ResizeObserver(() => { fitHeads(state); state.ask(true); });
  [root, state.heads.room].forEach((part) => sizes.observe(part));
  const sight = new IntersectionObserver(([entry]) => state.player.see(entry.isIntersecting));
  sight.observe(root);
  const looking = setInterval(() => recolour(state), LOOK);
  return () => {
    window.removeEventListener(ARRIVED, arrived);
    window.removeEventListener("keydown", pressed);
    sizes.disconnect();
    sight.disconnect();
    clearInterval(looking);
    cancelAnimationFrame(state.request);
    state.player.see(false);
    state.announcer.hush();
    state.sound?.end();
    Object.assign(state, { request: null, unwatch: null, sound: null });
  };
}

function begun(root, data) {
  const state = { root, data, logSteps: true, logLoss: false, glossed: null, announcer: announcer() };
  state.ask = (isStale = false) => {
    state.isStale ||= isStale;
    state.request ??= requestAnimationFrame(() => draw(state));
  };
  state.player = new Player(data.words, {
    moved: state.ask,
    over: (isEnd) => { if (!isEnd) state.announcer.hush(); state.ask(); },
    readAt: (at) => readAt(state, at),
    range: { max: 1, step: "any" },
    under: (share) => positionUnder(state, share),
  });
  state.goToStep = (step) => { if (state.view) state.player.scrub(positionOf(stepsOf(state), step)); };
  state.again = () => { if (!state.player.playing && !isCalm()) state.player.start(); };
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
  state.player.loops = Boolean(data.loop);
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
