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

export const keep = (name, value) => put(local, name, value);
export const kept = (name) => take(local, name);
export const keepInTab = (name, value) => put(session, name, value);
export const keptInTab = (name) => take(session, name);
