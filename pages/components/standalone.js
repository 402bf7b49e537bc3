// On a page of its own there is no server: the data stands in the page, a picked head goes to the lines.

import { bytes } from "./dom.js";
import renderGrid from "./head_grid.js";
import { tell } from "./head_grid.js";
import renderLines from "./head_lines.js";

const read = (name) => bytes(document.getElementById(name).textContent);

function startGrid() {
  const parentElement = document.getElementById("grid");
  const picked = (name, value) => {
    if (name !== "pick") return;
    const state = parentElement.querySelector(".heads").headGrid;
    const { words } = state.view;
    state.view.chosen = value;
    const [layer, head] = [value[0] + 1, value[1] + 1];
    document.getElementById("which").textContent = `${words.layer} ${layer}, ${words.head.toLowerCase()} ${head}`;
    tell(state);
  };
  renderGrid({ data: read("grid-data"), parentElement, setTriggerValue: picked });
}

function startLines() {
  const parentElement = document.getElementById("one");
  renderLines({ data: read("lines-data"), parentElement, setTriggerValue: () => {} });
}

startGrid();
if (document.getElementById("lines-data")) startLines();
