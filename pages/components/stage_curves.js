// Loss and accuracy on two canvases, with a play head: drawn anew at each frame, so kept short.

import { element, filled, pixelRatio, placeTip, tell, whole, zoomOf } from "./dom.js";
import { valueAt } from "./stage_time.js";

const LEFT = 40;
const RIGHT = 8;
const TOP = 16;
const BOTTOM = 19;

export const compactNumber = (value) => {
  if (value >= 10000) return `${Math.round(value / 1000)}k`;
  if (value >= 1000) return `${(value / 1000).toFixed(value % 1000 ? 1 : 0)}k`;
  return String(value);
};

export const percent = (share) => {
  if (share === 0 || share === 1) return `${100 * share}%`;
  const said = (100 * share).toFixed(1);
  return `${said === "100.0" ? "99.9" : said}%`; // as percent() in tfm_core/sentences.py
};

export const said = (quantity, value) => {
  if (quantity === "accuracy") return percent(value);
  return value >= 0.1 || value === 0 ? value.toFixed(3) : value.toPrecision(2);
};

// Round places for ticks between two ends, about so many.
export function ticks(low, high, about) {
  const raw = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const size = [1, 2, 5, 10].find((n) => n * power >= raw) * power;
  const found = [];
  for (let i = Math.ceil(low / size); i * size <= high + size * 1e-6; i += 1) found.push(Number((i * size).toPrecision(6)));
  return found;
}

export function stepTicks(last, isLog) {
  if (!isLog) return ticks(0, last, 5).filter(Number.isInteger);
  const found = [];
  for (let step = 1; step <= last; step *= 10) found.push(step);
  return found;
}

// Where a step stands on the axis, from 0 to 1.
export function across(step, last, isLog) {
  if (isLog) return Math.log(Math.max(1, step)) / Math.log(Math.max(2, last));
  return step / Math.max(1, last);
}

export function stepFrom(share, last, isLog) {
  const inside = Math.max(0, Math.min(1, share));
  return isLog ? Math.max(2, last) ** inside : inside * last;
}

// The ends of the upward axis: accuracy is from 0 to 1; a spike of one batch is cut off. null: no
// value yet, so nothing to number the axis by.
export function ends(quantity, lines, marks, isLog) {
  if (quantity === "accuracy") return [0, 1];
  const values = lines.filter((line) => line.quantity === quantity && line.role !== "batch")
    .flatMap((line) => line.values).filter((value) => value !== null);
  const levels = marks.filter((mark) => mark.quantity === quantity).map((mark) => mark.value);
  if (!values.length && !levels.length) return null;
  const top = Math.max(1e-6, ...values, ...levels) * 1.05;
  if (!isLog) return [0, top];
  const least = Math.min(top / 10, ...values.filter((value) => value > 0));
  return [least / 1.2, top];
}

export function upward(value, [low, high], isLog) {
  if (!isLog) return (value - low) / (high - low);
  return Math.log(Math.max(value, low) / low) / Math.log(high / low);
}

export function buildCurves(state) {
  const { words } = state.data;
  const box = element("div", "curves");
  const charts = ["loss", "accuracy"].map((quantity) => {
    const canvas = element("canvas", "", { role: "img" });
    const chart = element("div", `chart ${quantity}`, element("div", "name", words[quantity]), canvas);
    box.append(chart);
    return { quantity, chart, canvas, still: document.createElement("canvas") };
  });
  const why = buildWhy(words);
  charts[0].chart.append(why.button, why.text);
  const tip = element("div", "tip", { hidden: true });
  box.append(tip);
  const curves = { box, charts, tip, why, hover: null };
  charts.forEach((part) => listen(state, curves, part));
  return curves;
}

// What is seen of a line: its ends and its extremes. As line() in tfm_core/plots/described.py.
export function describedLine({ quantity, role, steps, values }, words) {
  const known = values.flatMap((value, i) => (value === null ? [] : [i]));
  if (!known.length) return "";
  const [first, last] = [known[0], known[known.length - 1]];
  const low = known.reduce((one, other) => (values[other] < values[one] ? other : one));
  const high = known.reduce((one, other) => (values[other] > values[one] ? other : one));
  const [value, at] = [(i) => said(quantity, values[i]), (i) => whole(steps[i])];
  const parts = {
    name: words[role], value: value(last), at: at(last), first: value(first), start: at(first), last: value(last), end: at(last),
    low: value(low), low_at: at(low), high: value(high), high_at: at(high),
  };
  const ends = [first, last];
  const template = first === last ? words.one_value : ends.includes(low) && ends.includes(high) ? words.line : words.line_and_extremes;
  return filled(template, parts);
}

export function nameCurves({ data: { lines, words }, curves }) {
  curves.charts.forEach(({ quantity, canvas }) => {
    const drawn = lines.filter((line) => line.quantity === quantity && line.role !== "batch" && line.role !== "best");
    const sentences = drawn.map((line) => describedLine(line, words)).filter(Boolean);
    tell(canvas, [words.chart.replace("{name}", words[quantity]), ...(sentences.length ? sentences : [words.none])]);
  });
}

// The values of both charts, a column a line.
export function curveTables({ data: { lines, words } }) {
  return ["loss", "accuracy"].map((quantity) => {
    const own = lines.filter((line) => line.quantity === quantity && line.role !== "best");
    const steps = [...new Set(own.flatMap((line) => line.steps))].sort((one, other) => one - other);
    const at = own.map((line) => new Map(line.steps.map((step, i) => [step, line.values[i]])));
    return {
      caption: words[quantity],
      head: [words.step, ...own.map(({ role }) => words[role])],
      rows: steps.map((step) => [String(step), ...at.map((values) => values.get(step) ?? null)]),
    };
  }).filter(({ rows }) => rows.length);
}

// Why validation looks better than training: behind a button, in the chart where it does.
function buildWhy(words) {
  const text = element("p", "why-text", { id: "why-better" });
  const button = element("button", "why", words.why_better, { "aria-controls": text.id });
  const open = (isOpen) => {
    text.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
  };
  button.addEventListener("click", () => open(text.hidden));
  button.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !text.hidden) { event.stopPropagation(); open(false); }
  });
  open(false);
  return { button, text, open };
}

function showWhy({ data, curves: { why } }) {
  const sentence = data.better?.[2] ?? "";
  why.button.hidden = !sentence;
  if (!sentence) why.open(false);
  if (why.text.textContent !== sentence) why.text.textContent = sentence;
}

function listen(state, curves, part) {
  const { canvas } = part;
  const stepUnder = (event) => {
    const { left } = canvas.getBoundingClientRect();
    const share = ((event.clientX - left) / zoomOf(canvas) - LEFT) / (canvas.clientWidth - LEFT - RIGHT);
    return stepFrom(share, lastStep(state), state.logSteps);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    curves.drags = true;
    state.goToStep(stepUnder(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    if (curves.drags) state.goToStep(stepUnder(event));
    curves.hover = event.pointerType === "touch" ? null : { step: stepUnder(event), x: event.clientX, y: event.clientY };
    state.ask();
  });
  const end = () => { curves.drags = false; };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => { curves.hover = null; state.ask(); });
}

export const lastStep = ({ data }) => Math.max(data.live ? data.total : 0, data.now, 1);

// A small stage has no room to say what its star and its ring are.
const isDrawn = ({ compact }, { role }) => !compact || (role !== "test" && role !== "best");

function straight(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

// All that stands still, on a canvas of its own: the play head then costs one copy of it.
function drawStill(state, part, box) {
  const { data, ink, line: faint } = state;
  const { quantity, still } = part;
  const ratio = pixelRatio(part.canvas);
  still.width = Math.round(box.width * ratio);
  still.height = Math.round(box.height * ratio);
  const pen = still.getContext("2d");
  pen.scale(ratio, ratio);
  const isLog = quantity === "loss" && state.logLoss;
  const range = ends(quantity, data.lines, data.marks, isLog);
  const last = lastStep(state);
  part.x = (step) => LEFT + across(step, last, state.logSteps) * (box.width - LEFT - RIGHT);
  part.y = (value) => TOP + (1 - upward(value, range ?? [0, 1], isLog)) * (box.height - TOP - BOTTOM);
  pen.font = `12px ${state.font}`;
  pen.lineWidth = 1;
  pen.strokeStyle = faint;
  pen.fillStyle = ink;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const levels = !range ? [] : isLog ? stepTicks(1e9, true).flatMap((n) => [n / 1e6]).filter((n) => n >= range[0] && n <= range[1])
    : ticks(range[0], range[1], box.height > 130 ? 4 : 2);
  levels.forEach((level) => {
    const y = Math.round(part.y(level)) + 0.5;
    straight(pen, LEFT, y, box.width - RIGHT, y);
    pen.globalAlpha = 0.8;
    pen.fillText(quantity === "accuracy" ? `${Math.round(100 * level)}%` : String(level), LEFT - 5, y);
    pen.globalAlpha = 1;
  });
  pen.textBaseline = "top";
  stepTicks(last, state.logSteps).forEach((step) => {
    const x = part.x(step);
    pen.textAlign = x > box.width - 30 ? "right" : "center";
    pen.globalAlpha = 0.8;
    pen.fillText(compactNumber(step), Math.min(x, box.width - 2), box.height - BOTTOM + 5);
    pen.globalAlpha = 1;
  });
  pen.strokeStyle = ink;
  (state.view?.frames ?? []).forEach((frame) => {
    const x = part.x(frame.step);
    straight(pen, x, box.height - BOTTOM, x, box.height - BOTTOM + 3);
  });
  data.marks.filter((mark) => mark.quantity === quantity).forEach((mark) => {
    const y = part.y(mark.value);
    pen.strokeStyle = data.grey;
    pen.setLineDash([2, 3]);
    straight(pen, LEFT, y, box.width - RIGHT, y);
    pen.setLineDash([]);
    pen.fillStyle = ink;
    pen.globalAlpha = 0.75;
    pen.textAlign = "right";
    pen.textBaseline = y < TOP + 14 ? "top" : "bottom";
    pen.fillText(mark.words, box.width - RIGHT - 2, y + (y < TOP + 14 ? 2 : -2));
    pen.globalAlpha = 1;
  });
  drawBetter(state, pen, part, box);
  drawUprights(state, pen, part, box);
  drawLines(state, pen, part, box, isDrawn, AHEAD);
}

// The lines up to a step; those of all steps are faint, as what comes is not known yet.
export function drawLines({ data, logSteps }, pen, part, box, isWanted, alpha, upTo = Infinity) {
  pen.save();
  pen.beginPath();
  pen.rect(LEFT - 4, TOP - 6, box.width - LEFT - RIGHT + 12, box.height - TOP - BOTTOM + 10);
  pen.clip();
  data.lines.filter((line) => line.quantity === part.quantity && isWanted(data, line))
    .forEach((line) => drawLine(pen, part, line, { alpha: STARRED.has(line.role) ? 1 : alpha, upTo, logSteps }));
  pen.restore();
}

// A band over the steps in which validation looks better than training.
function drawBetter({ data, logSteps }, pen, part, box) {
  if (!data.better || data.compact) return;
  const [first, last] = data.better;
  const left = part.x(logSteps ? Math.max(1, first) : first);
  pen.globalAlpha = 0.14;
  pen.fillStyle = data.lines.find((line) => line.role === "validation")?.colour ?? data.grey;
  pen.fillRect(left, TOP, Math.max(2, part.x(last) - left), box.height - TOP - BOTTOM);
  pen.globalAlpha = 1;
}

// Upright lines where something went wrong or a setting was changed; on the loss, with their words.
function drawUprights({ data, ink, logSteps }, pen, part, box) {
  const middle = (TOP + box.height - BOTTOM) / 2; // above and below it are the levels' words
  const isLoss = part.quantity === "loss";
  const uprights = [...(isLoss ? data.begins : []).map((one) => [...one, data.ill]), ...data.turns.map((one) => [...one, ink])];
  uprights.filter(([step]) => !logSteps || step >= 1).forEach(([step, words, colour], number) => {
    const x = Math.round(part.x(step)) + 0.5;
    pen.strokeStyle = colour;
    pen.fillStyle = colour;
    pen.setLineDash([4, 3]);
    straight(pen, x, TOP, x, box.height - BOTTOM);
    pen.setLineDash([]);
    if (!isLoss || number < uprights.length - NAMED) return;
    const isRight = x > box.width / 2;
    pen.textAlign = isRight ? "right" : "left";
    pen.textBaseline = "middle";
    pen.fillText(words, x + (isRight ? -4 : 4), middle + 13 * (number % NAMED));
  });
}

const NAMED = 4; // newest upright lines whose words are shown
const DOTTED = new Set(["validation", "whole", "average", "average_whole"]);
const DASHED = new Set(["whole", "average_whole"]);
const STARRED = new Set(["test", "best"]);
const AHEAD = 0.3; // of the ink of a line, where the play head has not been

function drawLine(pen, part, line, { alpha, upTo, logSteps }) {
  pen.strokeStyle = line.colour;
  pen.fillStyle = line.colour;
  pen.globalAlpha = alpha;
  pen.lineWidth = { batch: 1, training: 2.2 }[line.role] ?? 1.8;
  pen.setLineDash(DASHED.has(line.role) ? [5, 3] : []);
  const all = line.steps.map((step, i) => [step, line.values[i]])
    .filter(([step, value]) => value !== null && (!logSteps || step >= 1));
  const points = all.filter(([step]) => step <= upTo);
  if (STARRED.has(line.role)) {
    points.forEach(([step, value]) => star(pen, part.x(step), part.y(value), line.role));
  } else {
    pen.beginPath();
    points.forEach(([step, value], i) => pen[i ? "lineTo" : "moveTo"](part.x(step), part.y(value)));
    pen.stroke();
    if (DOTTED.has(line.role) && all.length < 40) {
      points.forEach(([step, value]) => { pen.beginPath(); pen.arc(part.x(step), part.y(value), 2.6, 0, 7); pen.fill(); });
    }
  }
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}

const KEY = [20, 12]; // pixels of the key of a line
const SHARP = 3; // pixels of its canvas for each of them: a presented figure is zoomed

// A line's key is drawn as the line is.
export function drawKey(canvas, line) {
  if (canvas.dataset.colour === line.colour) return;
  canvas.dataset.colour = line.colour;
  [canvas.width, canvas.height] = KEY.map((side) => SHARP * side);
  const pen = canvas.getContext("2d");
  pen.scale(SHARP, SHARP);
  const steps = STARRED.has(line.role) ? [0.5] : [0.1, 0.9];
  const part = { x: (share) => share * KEY[0], y: () => KEY[1] / 2 };
  drawLine(pen, part, { ...line, steps, values: steps }, { alpha: 1, upTo: 1, logSteps: false });
}

function star(pen, x, y, role) {
  pen.beginPath();
  if (role === "best") { pen.lineWidth = 2; pen.arc(x, y, 6, 0, 7); pen.stroke(); return; }
  for (let i = 0; i < 10; i += 1) {
    const [angle, radius] = [Math.PI * (i / 5 - 0.5), i % 2 ? 3 : 7];
    pen[i ? "lineTo" : "moveTo"](x + radius * Math.cos(angle), y + radius * Math.sin(angle));
  }
  pen.closePath();
  pen.fill();
}

// step: where the play head stands. isStale: whether what stands still has changed.
export function drawCurves(state, step, isStale) {
  const { curves } = state;
  curves.charts.forEach((part) => {
    const { canvas, still } = part;
    const box = { width: canvas.clientWidth, height: canvas.clientHeight };
    if (!box.width || !box.height) return;
    const ratio = pixelRatio(canvas);
    if (isStale || part.drawn !== `${box.width} ${box.height} ${ratio}`) {
      drawStill(state, part, box);
      canvas.width = still.width;
      canvas.height = still.height;
      part.drawn = `${box.width} ${box.height} ${ratio}`;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(still, 0, 0);
    pen.scale(ratio, ratio);
    const isPast = (data, line) => line.role !== "batch" && !STARRED.has(line.role) && isDrawn(data, line);
    drawLines(state, pen, part, box, isPast, 1, step);
    if (curves.hover) rule(pen, part.x(curves.hover.step), box, state.ink, 0.35, 1);
    rule(pen, part.x(step), box, state.ink, 1, 1.5);
    state.data.lines.filter((line) => line.quantity === part.quantity && line.role !== "batch" && line.role !== "best" && isDrawn(state.data, line)).forEach((line) => {
      const at = valueAt(line, step);
      if (!at || (line.role === "test" && at.step > step)) return;
      pen.fillStyle = line.colour;
      pen.strokeStyle = state.paper;
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.arc(part.x(line.role === "training" ? step : at.step), part.y(at.value), 4, 0, 7);
      pen.fill();
      pen.stroke();
    });
  });
  showTip(state);
  showWhy(state);
}

function rule(pen, x, box, ink, alpha, width) {
  pen.globalAlpha = alpha;
  pen.strokeStyle = ink;
  pen.lineWidth = width;
  straight(pen, x, TOP - 6, x, box.height - BOTTOM);
  pen.globalAlpha = 1;
}

function showTip(state) {
  const { tip, hover } = state.curves;
  tip.hidden = !hover;
  if (!hover) return;
  const { words, lines } = state.data;
  const rows = lines.filter((line) => line.role !== "batch" && line.role !== "best").flatMap((line) => {
    const at = valueAt(line, hover.step);
    const when = at && DOTTED.has(line.role) ? ` (${words.step} ${whole(at.step)})` : "";
    return at ? [`${words[line.quantity]}, ${words[line.role]}: ${said(line.quantity, at.value)}${when}`] : [];
  });
  tip.textContent = [`${words.step} ${whole(hover.step)}`, ...rows].join("\n");
  placeTip(tip, hover.x, hover.y);
}

// ---- the curve, heard: the lower the loss, the lower the tone; nothing sounds before it is asked for

const [LOWEST, HIGHEST] = [196, 1175]; // hertz
const LOUD = 0.08;
const FADE = 0.12; // seconds

// The tone of a value between two others, evenly in octaves and in the logarithm of the value.
export function pitch(value, low, high) {
  if (!(high > low) || !(low > 0)) return LOWEST;
  const share = Math.log(Math.max(low, Math.min(high, value)) / low) / Math.log(high / low);
  return LOWEST * (HIGHEST / LOWEST) ** share;
}

// The lowest and the highest value of a line that a logarithm takes.
export function range({ values }) {
  const known = values.filter((value) => value > 0);
  return known.length ? [Math.min(...known), Math.max(...known)] : [0, 0];
}

export function instrument() {
  const audio = new AudioContext();
  const [tone, volume] = [audio.createOscillator(), audio.createGain()];
  tone.type = "triangle";
  volume.gain.value = 0;
  tone.connect(volume).connect(audio.destination);
  tone.start();
  return {
    play(hertz) {
      const at = audio.currentTime;
      tone.frequency.setTargetAtTime(hertz, at, 0.015);
      volume.gain.cancelScheduledValues(at);
      volume.gain.setTargetAtTime(LOUD, at, 0.01);
      volume.gain.setTargetAtTime(0, at + FADE, 0.05);
    },
    end: () => audio.close(),
  };
}
