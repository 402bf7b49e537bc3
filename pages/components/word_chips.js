// Words to press, and the browser's own list of completions below the field they are typed into.

import { actButton, dress, element } from "./dom.js";

const MAX = 12; // completions offered at once

// The texts that a beginning can become: its last word completed.
export function completions(text, words, glue) {
  const at = glue ? text.lastIndexOf(glue) + glue.length : text.length;
  const [before, last] = [text.slice(0, Math.max(0, at)), text.slice(Math.max(0, at)).toLowerCase()];
  if (!last) return [];
  return words.filter((word) => word.startsWith(last) && word !== last).slice(0, MAX).map((word) => before + word);
}

function build(state) {
  const { root, data } = state;
  root.textContent = "";
  dress(root, { role: "group", "aria-label": data.label });
  data.groups.forEach(([name, words]) => {
    const chips = words.map((word) => actButton("", word, () => state.send("pick", word)));
    root.append(element("div", "row", name && element("span", "name", name), ...chips));
  });
}

// The field is Streamlit's own, and made anew now and then: a list of completions is all that it gets.
function complete(state, input) {
  const { field, glue, groups } = state.data;
  if (!input.matches?.(`.st-key-${field} input`)) return;
  state.list ??= document.body.appendChild(element("datalist"));
  state.list.id = `${field}-completions`;
  input.setAttribute("list", state.list.id);
  const texts = completions(input.value, groups.flatMap(([, words]) => words), glue);
  state.list.replaceChildren(...texts.map((value) => element("option", "", { value })));
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".chips");
  const state = (root.chips ??= { root });
  Object.assign(state, { data, send: setTriggerValue });
  const shown = JSON.stringify(data.groups);
  if (state.shown !== shown) { build(state); state.shown = shown; }
  const listen = (event) => complete(state, event.target);
  document.addEventListener("input", listen);
  return () => {
    document.removeEventListener("input", listen);
    state.list?.remove();
    state.list = undefined;
  };
}
