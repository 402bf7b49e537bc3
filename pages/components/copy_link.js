import { element } from "./dom.js";

const SHOWN = 2000; // milliseconds that a button says that it has copied

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // refused, or plain http, where there is no clipboard to write to
  }
}

function copyBySelection(field) {
  field.focus();
  field.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  }
}

function build(root) {
  const first = element("button", "first");
  const others = element("button", "others", "▾");
  [first, others].forEach((button) => { button.type = "button"; });
  others.setAttribute("aria-haspopup", "true");
  const panel = element("div", "panel");
  panel.setAttribute("role", "group");
  panel.hidden = true;
  const said = element("div", "said");
  said.setAttribute("role", "status");
  const board = buildBoard();
  root.append(first, others, panel, said, board.dialog);
  return { first, others, panel, said, board };
}

// The code stands large over the page, dark on white in every theme, above the address in words.
function buildBoard() {
  const dialog = element("dialog", "board");
  const title = element("h2");
  const picture = element("div", "code");
  const address = element("p", "address");
  const local = element("p", "local");
  const close = element("button", "close");
  close.type = "button";
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.append(close, title, picture, address, local);
  return { dialog, title, picture, address, local, close };
}

// Parts of the page change the address without this component hearing of it.
function lookWhere(state) {
  const fields = state.parts.panel.querySelectorAll("input");
  state.data.links.forEach((link, at) => {
    if (link.is_here) fields[at].value = link.href = window.location.href;
  });
}

function showCode(state, at) {
  const { board } = state.parts;
  lookWhere(state);
  state.asked = [at, state.data.links[at].href];
  board.close.textContent = state.data.words.close;
  fillCode(state);
  if (!board.dialog.open) board.dialog.showModal();
  state.send("code", state.asked);
}

function fillCode(state) {
  const { board } = state.parts;
  const { words, code } = state.data;
  const link = state.data.links[state.asked?.[0]];
  if (!link) return;
  board.dialog.setAttribute("aria-label", words.code);
  board.title.textContent = link.opens;
  board.address.textContent = link.href;
  board.local.textContent = link.local;
  if (String(code?.asked) !== String(state.asked)) {
    board.picture.textContent = words.drawing;
  } else if (!code.src) {
    board.picture.textContent = words.tooLong;
  } else if (board.picture.firstElementChild?.src !== code.src) {
    const picture = element("img");
    picture.src = code.src;
    picture.alt = `${words.code}: ${link.href}`;
    board.picture.replaceChildren(picture);
  }
}

// Copy one link; the button says so for a while, and the address stands there where it cannot be.
async function press(state, at, button) {
  const { words, links } = state.data;
  const { panel, refused, said } = state.parts;
  lookWhere(state);
  const wasOpen = !panel.hidden;
  let isCopied = await copy(links[at].href);
  if (!isCopied) {
    open(state, true); // only a field in sight can be copied from
    isCopied = copyBySelection(panel.querySelectorAll("input")[at]);
  }
  refused.hidden = isCopied;
  said.textContent = isCopied ? words.copied : words.refused;
  if (!isCopied) return;
  open(state, wasOpen);
  button.focus();
  button.textContent = `✓ ${words.copied}`;
  setTimeout(() => { button.textContent = button.dataset.label; said.textContent = ""; }, SHOWN);
}

function open(state, isOpen) {
  const { panel, others } = state.parts;
  if (isOpen) lookWhere(state);
  panel.hidden = !isOpen;
  others.setAttribute("aria-expanded", String(isOpen));
}

function label(button, text, what) {
  button.dataset.label = text;
  button.textContent = text;
  button.setAttribute("aria-label", what);
  button.title = what;
}

function fill(state) {
  const { first, others, panel } = state.parts;
  const { words, links, note } = state.data;
  const to = (link) => words.to.replace("{what}", link.to);
  label(first, words.copy, to(links[0]));
  others.setAttribute("aria-label", words.others);
  others.title = words.others;
  panel.setAttribute("aria-label", words.others);
  panel.textContent = "";
  state.parts.refused = element("p", "", words.refused);
  state.parts.refused.hidden = true;
  panel.append(state.parts.refused);
  links.forEach((link, at) => {
    const row = element("div", "row");
    const field = element("input");
    field.readOnly = true;
    field.value = link.href;
    field.setAttribute("aria-label", link.opens);
    field.addEventListener("focus", () => field.select());
    const button = element("button");
    button.type = "button";
    label(button, words.copy, to(link));
    button.addEventListener("click", () => press(state, at, button));
    const code = element("button");
    code.type = "button";
    label(code, words.code, words.codeTo.replace("{what}", link.to));
    code.addEventListener("click", () => showCode(state, at));
    row.append(field, button, code);
    panel.append(element("p", "", link.opens), row);
  });
  const present = element("button", "present", words.present);
  present.type = "button";
  present.addEventListener("click", () => { open(state, false); document.dispatchEvent(new Event("present")); });
  panel.append(present);
  if (note) panel.append(element("p", "note", note));
}

export default function ({ data: [data], parentElement, setStateValue }) {
  const root = parentElement.querySelector(".copy-link");
  if (!root.copyLink) {
    const state = { parts: build(root) };
    root.copyLink = state;
    const { first, others, panel } = state.parts;
    first.addEventListener("click", () => press(state, 0, first));
    others.addEventListener("click", () => open(state, panel.hidden));
    root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || panel.hidden || root.copyLink.parts.board.dialog.open) return;
      open(state, false);
      others.focus();
    });
  }
  const state = root.copyLink;
  state.send = setStateValue;
  const said = JSON.stringify(data);
  if (said !== state.said) { // else a tick would take the focus out of an open panel
    state.said = said;
    const links = JSON.stringify([data.links, data.note, data.words]);
    state.data = structuredClone(data); // see lookWhere
    if (links !== state.links) { // a code that came leaves the panel and its focus as they are
      state.links = links;
      fill(state);
      open(state, !state.parts.panel.hidden);
    }
    fillCode(state);
  }
  state.hearing?.abort();
  const hearing = new AbortController();
  state.hearing = hearing;
  document.addEventListener("pointerdown", (event) => {
    if (!event.composedPath().includes(root)) open(state, false);
  }, { signal: hearing.signal });
  return () => hearing.abort(); // its own only: a newer draw has another
}
