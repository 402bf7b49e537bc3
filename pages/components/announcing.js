// What a screen reader hears of what changes.

import { element } from "./dom.js";

// A polite region. Of several parts it says those that are new, of others the last.
export function status(className = "spoken") {
  const region = element("div", className);
  region.setAttribute("role", "status");
  let before = [];
  const say = (...parts) => {
    const given = parts.filter(Boolean);
    const fresh = given.filter((part) => !before.includes(part));
    before = given;
    const words = (fresh.length ? fresh : given.slice(-1)).join(". ");
    if (region.textContent !== words) region.textContent = words;
  };
  return { region, say };
}

const APART = 10_000; // milliseconds between two sentences

// Of a training it hears one sentence at a time. say: the newest waits for its turn in the place of an older
// one. hush: none waits any more.
export function announcer(now = () => performance.now()) {
  const { region, say } = status();
  let [last, waiting, timer] = [-Infinity, null, null];
  const speak = () => {
    timer = null;
    if (waiting === null) return;
    say(waiting);
    [last, waiting] = [now(), null];
  };
  return {
    region,
    say(sentence) {
      if (!sentence) return;
      waiting = sentence;
      timer ??= setTimeout(speak, Math.max(0, last + APART - now()));
    },
    hush() {
      clearTimeout(timer);
      [waiting, timer] = [null, null];
    },
  };
}

// What is new of a run since the data before, as a sentence; null where nothing is.
export function news(before, data, filled) {
  if (data.paused) return null;
  if (before && !before.ended && data.ended) return data.ended;
  if (!data.live) return null;
  const known = before?.moments.at(-1)?.[0] ?? -1;
  const moment = data.moments.at(-1);
  if (before && moment?.[0] > known) return moment[1];
  const isFirst = data.now > 0 && !(before?.now > 0);
  return isFirst ? filled(data.words.step_of, data.now, data.total) : null;
}
