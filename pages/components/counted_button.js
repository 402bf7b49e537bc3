// Counts its presses and sends the count: what is merged on the way loses none.

import { drawn, element } from "./dom.js";

export default function ({ data, parentElement, setStateValue }) {
  const button = parentElement.querySelector("button");
  if (!button.counted) {
    button.counted = { name: `${Date.now()}-${Math.random()}`, times: 0 };
    button.addEventListener("click", () => {
      button.counted.times += 1;
      button.counted.send("pressed", [button.counted.name, button.counted.times]);
    });
  }
  button.counted.send = setStateValue;
  const icon = drawn("svg", { viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true" });
  icon.append(drawn("path", { d: data.path, fill: "currentColor" }));
  button.replaceChildren(icon, element("span", "", data.label));
  button.title = data.help;
}
