// What a browser keeps. Storage that is shut (a private window, a sandboxed frame) keeps nothing.

export const TOUR = "tfm-tour"; // where a tour was left: [place, run, answers by place]

const local = () => window.localStorage;
const session = () => window.sessionStorage;

function put(store, name, value) {
  try {
    if (value === null) store().removeItem(name);
    else store().setItem(name, value);
  } catch { /* nothing is kept */ }
}

function take(store, name) {
  try { return store().getItem(name); } catch { return null; }
}

const YEAR = 31536000; // seconds

// Keep a cookie for a year; an empty one goes.
export function keepCookie(name, value, path) {
  const secure = window.location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${name}=${value}; path=${path}; max-age=${value ? YEAR : 0}; samesite=lax${secure}`;
}

export const keep = (name, value) => put(local, name, value);
export const kept = (name) => take(local, name);
export const keepInTab = (name, value) => put(session, name, value);
export const keptInTab = (name) => take(session, name);

// What the browser remembers of a tour; null for anything else.
export function rememberedTour(text) {
  let value;
  try { value = JSON.parse(text ?? "null"); } catch { return null; }
  if (!Array.isArray(value)) return null;
  const [place, run, answers] = value;
  if (typeof place !== "string" || typeof run !== "string") return null;
  const isTable = Boolean(answers) && typeof answers === "object" && !Array.isArray(answers);
  return { place, run, answers: isTable ? answers : {} };
}

// The answers of a tour over a run, as indices of options by place; none of another tour or run.
export function rememberedAnswers(text, { place, run }) {
  const value = rememberedTour(text);
  const tour = (name) => name.split(".")[0];
  if (!value || value.run !== run || tour(value.place) !== tour(place)) return {};
  return Object.fromEntries(Object.entries(value.answers).filter(([, index]) => Number.isInteger(index)));
}
