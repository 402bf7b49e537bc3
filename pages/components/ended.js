// Says how the run in the strip ended, while its stage is on another page.

import { announcer } from "./announcing.js";

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".ended");
  if (!root.announcer) {
    root.announcer = announcer();
    root.append(root.announcer.region);
  }
  const before = root.before;
  root.before = data;
  if (before && before.run === data.run && !before.ended) root.announcer.say(data.ended);
}
