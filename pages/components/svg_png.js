// A button that saves a picture which the server drew.

import { element, save } from "./dom.js";

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".svg-png");
  root.textContent = "";
  const button = element("button", "", data.label);
  button.type = "button";
  button.title = data.help;
  button.addEventListener("click", () => {
    const svg = new DOMParser().parseFromString(data.svg, "image/svg+xml").documentElement;
    save(svg, data.name, "png");
  });
  root.append(button);
}
