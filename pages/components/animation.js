
// The training, played: the maps of every snapshot are here, so playing asks the server for nothing.
//
// Whoever shows it gives its state two functions: show(state) draws the snapshot it stands at, and
// blend(state) what lies between two.

import { actButton, drawn, element, isCalm, showPlaying, slider, whole } from "./dom.js";
import { forgetFrame, tellFrame } from "./events.js";
import { weightsAt } from "./stage_time.js";

const HOLD = 420; // milliseconds that a snapshot stands
const BLEND = 260; // and in which it turns into the next one
const REST = 350; // after which a hand that moves the film rests
const LARGE = 150_000; // weights of a snapshot from which on it turns at once

// New data came: stay at the step that is shown, unless the server moved on or shows something else.
export function startAt(state, before) {
  const { view } = state;
  const moved = !before || before.frames[before.frame].step !== view.frames[view.frame].step;
  const shown = before ? before.frames[state.at].step : null;
  const same = before && before.animation === view.animation;
  const at = view.frames.findIndex((frame) => frame.step === shown);
  const stays = same && at >= 0 && (state.playing || state.waiting || !moved);
  state.at = stays ? at : view.frame;
  if (!stays) { stopAnimation(state); state.waiting = null; }
  view.shown = weightsAt(view, state.at);
}

export function tell(state, isBetween = false) {
  const { view } = state;
  const [, heads, rows, columns] = view.shape;
  if (view.block > 1) return;
  const [layer, head] = state.pending?.head ?? view.chosen;
  const first = (layer * heads + head) * rows * columns;
  const values = view.shown.slice(first, first + rows * columns);
  tellFrame({ animation: view.animation, step: view.frames[state.at].step, values, rows, columns, isBetween });
}

// After a draw: go on where the film stands, or leave it to what the server drew.
export function tellDrawn(state) {
  if (state.playing || state.waiting) tell(state);
  else forgetFrame();
}

function goTo(state, at) {
  state.at = Math.max(0, Math.min(state.view.frames.length - 1, at));
  state.view.shown = weightsAt(state.view, state.at);
  state.show(state);
  showAnimation(state);
  tell(state);
}

// Tell the server where we stand, once the hand rests: the rest of the page then follows. A single press
// is told at once, and of more of them the first and the last.
function settleSoon(state) {
  const now = performance.now();
  settle(state, now - (state.pressed ?? -REST) < REST ? REST : 0);
  state.pressed = now;
}

function settle(state, wait) {
  clearTimeout(state.waiting);
  state.waiting = setTimeout(() => {
    state.waiting = null;
    state.send("step", state.view.frames[state.at].step);
  }, wait);
}

export function stopAnimation(state) {
  state.playing = false;
  cancelAnimationFrame(state.request);
}

function playAnimation(state) {
  state.playing = true;
  if (state.at === state.view.frames.length - 1) goTo(state, 0);
  showAnimation(state);
  let since = performance.now();
  const calm = isCalm() || state.view.shown.length > LARGE;
  const turn = (now) => {
    if (!state.playing) return;
    const past = now - since - HOLD;
    if (past >= (calm ? 0 : BLEND)) {
      since = now;
      goTo(state, state.at + 1);
      if (state.at === state.view.frames.length - 1) { pauseAnimation(state); return; }
    } else if (past > 0 && !calm) blend(state, past / BLEND);
    state.request = requestAnimationFrame(turn);
  };
  state.request = requestAnimationFrame(turn);
}

function pauseAnimation(state) {
  stopAnimation(state);
  goTo(state, state.at);
  settle(state, 0);
}

function blend(state, share) {
  const { view } = state;
  if (state.at + 1 >= view.frames.length) return;
  view.shown = weightsAt(view, state.at + share);
  state.blend(state);
  tell(state, true);
}

function buildAnimation(state) {
  const { animation } = state.parts;
  const { words } = state.view;
  const scrubber = slider(words.scrub, (at) => { stopAnimation(state); goTo(state, at); settle(state, REST); });
  const play = actButton("small play", "▶", () => (state.playing ? pauseAnimation(state) : playAnimation(state)), words.play);
  const move = (by) => () => { stopAnimation(state); goTo(state, state.at + by); settleSoon(state); };
  const step = element("span", "step");
  const back = actButton("small back", "‹", move(-1), words.back);
  const next = actButton("small next", "›", move(1), words.next);
  const controls = state.view.says ? [back, scrubber, next] : []; // on a page, its own slider chooses the step
  const bar = element("div", "bar", play, ...controls, step);
  const answer = element("div", "answer");
  const chart = element("div", "chart");
  animation.replaceChildren(bar, answer, chart);
  state.animation = { scrubber, play, step, answer, chart, back, next };
}

export function showAnimation(state) {
  const { view, parts } = state;
  parts.animation.hidden = view.frames.length < 2;
  if (parts.animation.hidden) return;
  if (!state.animation || !parts.animation.firstChild) buildAnimation(state);
  const { scrubber, play, step, answer, back, next } = state.animation;
  const frame = view.frames[state.at];
  const { words } = view;
  const named = `${words.step} ${whole(frame.step)}`;
  scrubber.max = view.frames.length - 1;
  scrubber.value = state.at;
  scrubber.setAttribute("aria-valuetext", named);
  back.disabled = state.at === 0;
  next.disabled = state.at === view.frames.length - 1;
  showPlaying(play, state.playing, words);
  step.textContent = named;
  answer.textContent = "";
  answer.hidden = !view.says;
  if (view.says && frame.answer !== null) {
    answer.append(element("span", "who", `${words.model} `), element("b", "", frame.answer || "–"));
    if (frame.is_right !== null) answer.append(element("span", frame.is_right ? "good" : "bad", frame.is_right ? ` ✓ ${words.right}` : ` ✗ ${words.wrong}`));
  }
  drawCurve(state);
}

// How far along the slider a step lies, from 0 to 1: snapshots are evenly spaced, steps are not.
export function along(steps, step) {
  const after = steps.findIndex((one) => one >= step);
  if (after <= 0) return after === 0 ? 0 : 1;
  const [from, to] = [steps[after - 1], steps[after]];
  return (after - 1 + (step - from) / (to - from)) / (steps.length - 1);
}

// Loss over the training, with the same spacing as the slider: early steps get as much room.
function drawCurve(state) {
  const { view, animation } = state;
  animation.chart.textContent = "";
  if (!view.curve) return;
  const { steps, values, name, described } = view.curve;
  const [wide, high] = [600, 46];
  const framed = view.frames.map((frame) => frame.step);
  const x = (step) => wide * along(framed, step);
  const least = Math.min(...values);
  const spread = Math.max(...values) - least || 1;
  const points = steps.map((step, i) => `${x(step).toFixed(1)},${(4 + (high - 8) * (1 - (values[i] - least) / spread)).toFixed(1)}`);
  const at = x(framed[state.at]);
  const svg = drawn("svg", { viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: "none", role: "img", "aria-label": described });
  svg.append(
    drawn("polyline", { points: points.join(" "), fill: "none", stroke: view.curve.colour, "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }),
    drawn("line", { x1: at, x2: at, y1: 0, y2: high, stroke: "currentColor", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }),
  );
  animation.chart.append(svg, element("span", "name", name));
}
