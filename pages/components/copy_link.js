import { status } from "./announcing.js";
import { actButton, dress, element } from "./dom.js";

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
  const rows = element("div");
  const said = status();
  const board = buildBoard();
  root.append(rows, said.region, board.dialog);
  return { rows, said, board };
}

// The code stands large over the page, dark on white in every theme, above the address in words.
function buildBoard() {
  const dialog = element("dialog", "board");
  const title = element("h2");
  const picture = element("div", "code");
  const address = element("p", "address");
  const local = element("p", "local");
  const close = actButton("close", "", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.append(close, title, picture, address, local);
  return { dialog, title, picture, address, local, close };
}

// Parts of the page change the address without this component hearing of it.
function lookWhere(state) {
  const fields = state.parts.rows.querySelectorAll("input");
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
    board.picture.replaceChildren(element("img", "", { src: code.src, alt: `${words.code}: ${link.href}` }));
  }
}

// Copy one link; the button says so for a while.
async function press(state, at, button) {
  const { words, links } = state.data;
  const { rows, refused, said } = state.parts;
  lookWhere(state);
  const isCopied = await copy(links[at].href) || copyBySelection(rows.querySelectorAll("input")[at]);
  refused.hidden = isCopied;
  said.say(isCopied ? words.copied : words.refused);
  if (!isCopied) return;
  button.focus();
  button.textContent = `✓ ${words.copied}`;
  setTimeout(() => { button.textContent = button.dataset.label; said.say(""); }, SHOWN);
}

function label(button, text, what) {
  dress(button, { "data-label": text, "aria-label": what, title: what });
  button.textContent = text;
}

function fill(state) {
  const { rows } = state.parts;
  const { words, links, note } = state.data;
  state.parts.refused = element("p", "", words.refused, { hidden: true });
  rows.replaceChildren(state.parts.refused);
  links.forEach((link, at) => {
    const field = element("input", "", { readOnly: true, value: link.href, "aria-label": link.opens });
    field.addEventListener("focus", () => field.select());
    const button = actButton("", "", () => press(state, at, button));
    label(button, words.copy, words.to.replace("{what}", link.to));
    const code = actButton("", "", () => showCode(state, at));
    label(code, words.code, words.codeTo.replace("{what}", link.to));
    rows.append(element("p", "", link.opens), element("div", "row", field, button, code));
  });
  if (note) rows.append(element("p", "note", note));
  lookWhere(state);
}

export default function ({ data: [data], parentElement, setStateValue }) {
  const root = parentElement.querySelector(".copy-link");
  const state = (root.copyLink ??= { parts: build(root) });
  state.send = setStateValue;
  const said = JSON.stringify(data);
  if (said !== state.said) { // else a tick would take the focus out of a field
    state.said = said;
    const links = JSON.stringify([data.links, data.note, data.words]);
    state.data = structuredClone(data); // see lookWhere
    if (links !== state.links) { // a code that came leaves the rows and their focus as they are
      state.links = links;
      fill(state);
    }
    fillCode(state);
  }
  const hearing = new AbortController();
  window.addEventListener("keydown", (event) => {
    if (state.parts.board.dialog.open) event.stopPropagation(); // Escape closes the code, not the menu, too
  }, { signal: hearing.signal, capture: true });
  return () => hearing.abort();
}
