// The meaning of a term of the glossary, at its word: on hover and focus, and it stays on a press.
// The words are links to "#term-softmax" in the page's Markdown, which nobody but Streamlit changes.

import { dress, element } from "./dom.js";

const WORDS = 'a[href^="#term-"]';
const GAP = 6;
const PATIENCE = 250; // milliseconds in which the pointer may go over to the meaning

const keyOf = (word) => word.getAttribute("href").slice("#term-".length);

function build(root) {
  const parts = { name: element("strong"), text: element("span"), link: element("a") };
  const box = element("div", "meaning", { id: "meaning-of-term", role: "tooltip", hidden: true }, ...Object.values(parts));
  root.append(box);
  return { box, parts };
}

function show(state, word, isPinned) {
  const term = state.terms[keyOf(word)];
  if (!term) return;
  clearTimeout(state.timer);
  if (state.word && state.word !== word) close(state);
  const { box, parts } = state;
  [parts.name.textContent, parts.text.textContent] = [term.name, term.text];
  parts.link.textContent = term.where;
  parts.link.href = term.href;
  Object.assign(state, { word, isPinned: isPinned || state.isPinned });
  dress(box, { role: state.isPinned ? "dialog" : "tooltip", "aria-label": term.name, hidden: false });
  dress(word, { "aria-describedby": box.id, "aria-expanded": String(state.isPinned) });
  place(box, word);
  if (isPinned) parts.link.focus({ preventScroll: true });
}

// Below its word where there is room, else above; inside the window in any case.
function place(box, word) {
  const at = word.getBoundingClientRect();
  const { clientWidth: width, clientHeight: height } = document.documentElement;
  const { offsetWidth, offsetHeight } = box;
  const below = at.bottom + GAP;
  const top = below + offsetHeight <= height ? below : Math.max(GAP, at.top - GAP - offsetHeight);
  box.style.top = `${top}px`;
  box.style.left = `${Math.max(GAP, Math.min(at.left, width - offsetWidth - GAP))}px`;
}

function close(state, isBack = false) {
  const { box, word } = state;
  clearTimeout(state.timer);
  if (!word) return;
  box.hidden = true;
  word.removeAttribute("aria-describedby");
  word.setAttribute("aria-expanded", "false");
  Object.assign(state, { word: null, isPinned: false });
  if (!isBack) return;
  state.isQuiet = true; // the focus comes back, the meaning does not
  word.focus({ preventScroll: true });
  state.isQuiet = false;
}

const wordAt = (event) => event.target.closest?.(WORDS) ?? null;

function listen(state, page, signal) {
  const { box } = state;
  const soon = () => {
    clearTimeout(state.timer);
    state.timer = setTimeout(() => { if (!state.isPinned) close(state); }, PATIENCE);
  };
  const on = (name, does) => page.addEventListener(name, does, { signal, capture: true });
  on("pointerover", (event) => {
    if (event.pointerType === "touch") return; // its press shows it
    const word = wordAt(event);
    if (word) show(state, word, false);
    else if (state.word && box.contains(event.target)) clearTimeout(state.timer);
    else if (state.word && !state.isPinned) soon();
  });
  on("focusin", (event) => {
    const word = state.isQuiet ? null : wordAt(event);
    if (word) { if (word !== state.word) show(state, word, false); }
    else if (!box.contains(event.target)) close(state);
  });
  on("click", (event) => {
    const word = wordAt(event);
    if (word) {
      event.preventDefault();
      event.stopPropagation();
      if (state.isPinned && state.word === word) close(state, true);
      else show(state, word, true);
    } else if (!box.contains(event.target)) close(state);
  });
  on("keydown", (event) => {
    if (event.key === " " && wordAt(event)) { event.preventDefault(); show(state, wordAt(event), true); }
    if (event.key !== "Escape" || !state.word) return;
    event.stopPropagation();
    close(state, box.contains(page.activeElement) || page.activeElement === state.word);
  });
  on("scroll", () => { if (state.word?.isConnected) place(box, state.word); else close(state); });
  const { link } = state.parts;
  link.addEventListener("keydown", (event) => {
    if (event.key === "Tab") close(state, true); // on from the word
  }, { signal });
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const key = keyOf(state.word);
    close(state);
    state.see(key);
  }, { signal });
}

// A word that opens its meaning is a button to who hears the page.
function name(page) {
  page.querySelectorAll(`${WORDS}:not([role])`).forEach((word) => {
    dress(word, { role: "button", "aria-expanded": "false" });
  });
}

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".terms");
  const page = root.ownerDocument;
  root.state ??= { ...build(root), word: null, isPinned: false, isQuiet: false, timer: 0 };
  const { state } = root;
  state.terms = data.terms;
  state.see = (key) => setTriggerValue("see", key);
  const hearing = new AbortController();
  listen(state, page, hearing.signal);
  const observer = new MutationObserver(() => {
    name(page);
    if (state.word && !state.word.isConnected) close(state);
  });
  observer.observe(page.body, { childList: true, subtree: true });
  name(page);
  return () => { hearing.abort(); observer.disconnect(); };
}
