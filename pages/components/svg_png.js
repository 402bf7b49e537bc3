// A button that saves a picture which the server drew.

import { actButton, save } from "./dom.js";

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".svg-png");
  const button = actButton("", data.label, () => {
    const svg = new DOMParser().parseFromString(data.svg, "image/svg+xml").documentElement;
    save(svg, data.name, "png");
  });
  button.title = data.help;
  root.replaceChildren(button);
}
