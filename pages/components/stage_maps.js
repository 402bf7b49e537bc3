// What the snapshots of a run show, kept for the stage of the same name: it comes with a new snapshot
// alone, while the stage itself hears of the curves at each look.

import { keep } from "./stage_time.js";
import { unpack } from "./cells.js";

export default function ({ data }) {
  keep(unpack(data));
}
