// What was known at a step of a training, and the snapshots that were sent.

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

export function momentAt(moments, step) {
  const at = lastUpTo(moments.map(([when]) => when), step);
  return at < 0 ? null : moments[at];
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
