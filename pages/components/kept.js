// What a browser keeps. Storage that is shut (a private window, a sandboxed frame) keeps nothing.

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
