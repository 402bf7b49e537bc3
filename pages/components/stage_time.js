// Where a stage stands: a position counts snapshots, 2.5 lies half way between the third and the fourth.

const TURN = 9000; // milliseconds that a whole training takes when it is played
const [SHORTEST, LONGEST] = [220, 800]; // and one snapshot

// Snapshots are dense at the beginning: the logarithm of the step moves evenly between two of them.
export function stepAt(steps, position) {
  if (!steps.length) return 0;
  const from = Math.max(0, Math.min(steps.length - 1, Math.floor(position)));
  const to = Math.min(steps.length - 1, from + 1);
  const share = Math.max(0, Math.min(1, position - from));
  if (!share || to === from) return steps[from];
  const [low, high] = [Math.log1p(steps[from]), Math.log1p(steps[to])];
  return Math.expm1(low + (high - low) * share);
}

export function positionOf(steps, step) {
  if (!steps.length || step <= steps[0]) return 0;
  const to = steps.findIndex((one) => one >= step);
  if (to < 0) return steps.length - 1;
  const [low, high] = [Math.log1p(steps[to - 1]), Math.log1p(steps[to])];
  return to - 1 + (Math.log1p(step) - low) / (high - low);
}

// The last index whose step is not behind a step; -1 where there is none.
export function lastUpTo(steps, step) {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// The newest value that was known at a step, and when it was measured; null where none was.
export function valueAt(line, step) {
  for (let i = lastUpTo(line.steps, step); i >= 0; i -= 1) {
    if (line.values[i] !== null) return { step: line.steps[i], value: line.values[i] };
  }
  return null;
}

export const frameAt = (position, count) => Math.max(0, Math.min(count - 1, Math.floor(position + 1e-6)));
export const isBetween = (position) => Math.abs(position - Math.round(position)) > 1e-3;
export const pace = (count) => Math.max(SHORTEST, Math.min(LONGEST, TURN / Math.max(1, count - 1)));

// The weights at a position: a snapshot's own numbers, or those of its neighbours mixed into `room`.
export function weightsAt(view, position, room) {
  const size = view.shape.reduce((product, n) => product * n, 1);
  const count = view.frames.length;
  const from = frameAt(position, count);
  const share = position - from;
  const first = view.values.subarray(from * size, (from + 1) * size);
  if (share < 1e-3 || from + 1 >= count) return first;
  const second = view.values.subarray((from + 1) * size, (from + 2) * size);
  const mixed = room?.length === size ? room : new Float32Array(size);
  for (let i = 0; i < size; i += 1) mixed[i] = first[i] + (second[i] - first[i]) * share;
  return mixed;
}

export function momentAt(moments, step) {
  const at = lastUpTo(moments.map(([when]) => when), step);
  return at < 0 ? null : moments[at];
}

// The first snapshot after a position, up to another, at which something happened; null where there is none.
export function nextMoment(moments, steps, from, to) {
  const told = new Set(moments.map(([step]) => step));
  for (let i = Math.floor(from + 1e-6) + 1; i <= to; i += 1) if (told.has(steps[i])) return i;
  return null;
}

// Snapshots by the name of their stage, for components of one page, which share nothing but the window.

export const ARRIVED = "stage-arrived";
const MAX = 4; // what was shown last, so that going back needs nothing

const store = () => { window.stageSnapshots ??= new Map(); return window.stageSnapshots; };

export function keep(view) {
  const kept = store();
  kept.delete(view.name);
  kept.set(view.name, view);
  if (kept.size > MAX) kept.delete(kept.keys().next().value);
  window.dispatchEvent(new CustomEvent(ARRIVED, { detail: view.name }));
}

export const kept = (name) => store().get(name) ?? null;
