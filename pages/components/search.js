import { element } from "./dom.js";
import { isPageKey } from "./keys.js";
import { matching } from "./matching.js";

function build(root) {
  const input = element("input");
  input.type = "search";
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", "found");
  input.autocomplete = "off";
  input.spellcheck = false;
  const list = element("div", "found");
  list.id = "found";
  list.setAttribute("role", "listbox");
  list.hidden = true;
  const said = element("div", "said");
  said.setAttribute("role", "status");
  root.append(input, list, said);
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
    const link = element("a");
    link.href = entry.href;
    link.id = `found-${at}`;
    link.tabIndex = -1;
    link.dataset.at = at;
    link.setAttribute("role", "option");
    link.append(element("b", "", entry.name), element("span", "", entry.about));
    list.append(link);
  });
  const { found, none } = state.data.words;
  if (!state.found.length) list.append(element("p", "", none));
  said.textContent = state.found.length ? found.replace("{n}", state.found.length) : none;
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
  input.placeholder = data.words.label;
  input.title = data.words.hint;
  input.setAttribute("aria-label", data.words.label);
  input.setAttribute("aria-keyshortcuts", "/");
  list.setAttribute("aria-label", data.words.label);
  if (list.hidden) close(state);
  state.hearing?.abort();
  const hearing = new AbortController();
  state.hearing = hearing;
  document.addEventListener("keydown", (event) => onSlash(state, event), { signal: hearing.signal });
  return () => hearing.abort(); // its own only: a newer draw has another
}
