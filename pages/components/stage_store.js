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
