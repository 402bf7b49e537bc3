import { status } from "./announcing.js";
import { dress, element } from "./dom.js";
import { isPageKey } from "./keys.js";

function build(root) {
  const field = { role: "combobox", "aria-autocomplete": "list", "aria-controls": "found" };
  const input = element("input", "", { type: "search", ...field, autocomplete: "off", spellcheck: false });
  const list = element("div", "found", { id: "found", role: "listbox", hidden: true });
  const said = status();
  root.append(input, list, said.region);
  return { input, list, said };
}

function listen(state) {
  const { input, list } = state.parts;
  input.addEventListener("input", () => show(state));
  input.addEventListener("focus", () => show(state));
  input.addEventListener("blur", () => close(state));
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && state.found.length) {
      event.preventDefault();
      if (list.hidden) show(state);
      else mark(state, (state.at + step + state.found.length) % state.found.length);
    } else if (event.key === "Enter" && !list.hidden && state.found.length) {
      event.preventDefault();
      go(state, state.at);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (list.hidden) input.value = "";
      close(state);
    }
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(state, Number(link.dataset.at));
  });
}

function show(state) {
  const { input, list, said } = state.parts;
  state.found = matching(state.data.entries, input.value);
  list.textContent = "";
  if (!input.value.trim()) { close(state); return; }
  state.found.forEach(({ entry }, at) => {
    const attributes = { href: entry.href, id: `found-${at}`, tabIndex: -1, "data-at": String(at), role: "option" };
    list.append(element("a", "", attributes, element("b", "", entry.name), element("span", "", entry.about)));
  });
  const { found, none } = state.data.words;
  if (!state.found.length) list.append(element("p", "", none));
  said.say(state.found.length ? found.replace("{n}", state.found.length) : none);
  list.hidden = false;
  input.setAttribute("aria-expanded", "true");
  mark(state, 0);
}

function mark(state, at) {
  state.at = at;
  const { input, list } = state.parts;
  [...list.querySelectorAll("a")].forEach((link, index) => {
    link.setAttribute("aria-selected", String(index === at));
    if (index === at) link.scrollIntoView({ block: "nearest" });
  });
  if (state.found.length) input.setAttribute("aria-activedescendant", `found-${at}`);
}

function close(state) {
  const { input, list } = state.parts;
  list.hidden = true;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
}

function go(state, at) {
  const { index } = state.found[at];
  state.parts.input.value = "";
  close(state);
  state.parts.input.blur();
  state.send("chosen", index);
}

// "/" comes here from anywhere but where somebody types, and from under an open dialog.
function onSlash(state, event) {
  if (!isPageKey(event, "/")) return;
  event.preventDefault();
  state.parts.input.focus();
  state.parts.input.select();
}

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".search");
  if (!root.search) {
    root.search = { parts: build(root), found: [], at: 0 };
    listen(root.search);
  }
  const state = root.search;
  state.data = data;
  state.send = setTriggerValue;
  const { input, list } = state.parts;
  const { label, hint } = data.words;
  dress(input, { placeholder: label, title: hint, "aria-label": label, "aria-keyshortcuts": "/" });
  list.setAttribute("aria-label", label);
  if (list.hidden) close(state);
  const hearing = new AbortController();
  document.addEventListener("keydown", (event) => onSlash(state, event), { signal: hearing.signal });
  return () => hearing.abort();
}

// Which entries of the search fit what is typed, the best first.

const MAX = 8;

// Letters alone, without accents and case.
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

const words = (text) => plain(text).split(/[^\p{L}\p{N}]+/u).filter(Boolean);

// How well a name begins with, has, or is explained by what is typed; 0 where it does not fit.
function fit(entry, typed) {
  const name = plain(entry.name);
  const codeNames = plain(entry.also).split(/\s+/); // "num_heads" is one of them, not "num" and "heads"
  if (codeNames.includes(typed)) return 6;
  const begins = (text) => words(text).some((word) => word.startsWith(typed));
  if (name.startsWith(typed)) return 5;
  if (begins(entry.name)) return 4;
  if (begins(entry.also) || codeNames.some((word) => word.startsWith(typed))) return 3;
  if (name.includes(typed)) return 2;
  const known = words(`${entry.name} ${entry.also} ${entry.about}`);
  return words(typed).length && words(typed).every((one) => known.some((word) => word.startsWith(one))) ? 1 : 0;
}

export function matching(entries, text) {
  const typed = plain(text).trim();
  if (!typed) return [];
  return entries
    .map((entry, index) => ({ entry, index, fit: fit(entry, typed) }))
    .filter((one) => one.fit)
    .sort((one, other) => other.fit - one.fit || one.index - other.index)
    .slice(0, MAX);
}
