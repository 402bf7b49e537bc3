// What a press has changed comes into sight: the big map on a phone, the arithmetic, a question's answer.

const EDGE = 90; // pixels: what lies below the bar on top, or shows less than this, is out of sight

export const isInSight = ({ top, bottom }, height) => top >= EDGE - 10 && top <= height - 2 * EDGE && bottom > EDGE;

export function changed(before, after) {
  return Object.keys(after).find((name) => after[name] && before[name] !== after[name]);
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".reveal");
  const before = root.marks;
  root.marks = data;
  const name = before && changed(before, data);
  const target = name && document.querySelector(`.st-key-${name}`);
  if (!target || isInSight(target.getBoundingClientRect(), window.innerHeight)) return;
  document.dispatchEvent(new CustomEvent("opened", { detail: target })); // arrival.js
}
