// The choice of the language. Who chose finds it again: a cookie keeps it. The document gets its
// language too, with what Streamlit itself writes.

import { element } from "./dom.js";
import { keepCookie } from "./kept.js";
import { reword } from "./streamlit_words.js";

function draw(root, data, send) {
  const { names, spoken, label } = data;
  const codes = Object.keys(names);
  if (!codes.length) { root.textContent = ""; return; }
  let select = root.querySelector("select");
  if (!select) {
    select = element("select");
    root.append(select);
  }
  select.setAttribute("aria-label", label);
  select.replaceChildren(...codes.map((code) => element("option", "", names[code], { value: code, lang: code })));
  select.value = spoken;
  select.onchange = () => {
    keepCookie(data.cookie, select.value, data.path);
    send("chosen", [select.value, Date.now()]);
  };
}

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = document.documentElement;
  root.lang = data.spoken;
  root.rewording ??= { words: {} }; // of the document: a change of page may make this component anew
  if (JSON.stringify(data.words) !== JSON.stringify(root.rewording.words)) reword(root.rewording, data.words);
  draw(parentElement.querySelector(".language"), data, setTriggerValue);
}
