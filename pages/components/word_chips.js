// Words to press, and the browser's own list of completions below the field they are typed into.

import { element } from "./dom.js";

const MOST = 12; // completions offered at once

// The texts that a beginning can become: its last word completed.
export function completions(text, words, glue) {
  const at = glue ? text.lastIndexOf(glue) + glue.length : text.length;
  const [before, last] = [text.slice(0, Math.max(0, at)), text.slice(Math.max(0, at)).toLowerCase()];
  if (!last) return [];
  return words.filter((word) => word.startsWith(last) && word !== last).slice(0, MOST).map((word) => before + word);
}

function build(state) {
  const { root, data } = state;
  root.textContent = "";
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", data.label);
  data.groups.forEach(([name, words]) => {
    const row = element("div", "row");
    if (name) row.append(element("span", "name", name));
    words.forEach((word) => {
      const chip = element("button", "", word);
      chip.type = "button";
      chip.addEventListener("click", () => state.send("pick", word));
      row.append(chip);
    });
    root.append(row);
  });
}

// The field is Streamlit's own; a list of completions is all that it gets from here.
function complete(state) {
  const input = document.querySelector(`.st-key-${state.data.field} input`);
  if (!input || input === state.input) return;
  state.input = input;
  const list = element("datalist");
  list.id = `${state.data.field}-completions`;
  input.after(list);
  input.setAttribute("list", list.id);
  input.addEventListener("input", () => {
    const words = state.data.groups.flatMap(([, group]) => group);
    list.replaceChildren(...completions(input.value, words, state.data.glue).map((text) => {
      const option = element("option");
      option.value = text;
      return option;
    }));
  });
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".chips");
  const state = root.chips ?? { root };
  root.chips = state;
  Object.assign(state, { data, send: setTriggerValue });
  const shown = JSON.stringify(data.groups);
  if (state.shown !== shown) { build(state); state.shown = shown; }
  complete(state);
}
