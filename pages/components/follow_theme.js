// Says when the page's theme is no longer the one that the server drew its figures for.

import { isDark } from "./dom.js";

const LOOK = 500; // milliseconds

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".follow-theme");
  const looking = setInterval(() => {
    if (!root.isConnected) return;
    const dark = isDark(root);
    if (dark === data.dark) root.told = null;
    if (dark === data.dark || dark === root.told) return; // told once, even if the server sees it otherwise
    root.told = dark;
    setTriggerValue("theme", dark);
  }, LOOK);
  return () => clearInterval(looking);
}
