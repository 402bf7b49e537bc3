// Where everything of the picture stands, in pixels at scale 1: lanes below each other, tokens as rows.

const ROW = 22;
const LANE_HIGH = 300; // of many tokens, rows get lower until they fit
const ONLY_HIGH = 440; // of a lane without another
const LEGIBLE = 15; // pixels of the screen, of a row whose text can be read and touches no other
const GAP = 22;
const FLOW = 34; // left of maps and right of them: there the lines of attention run
const TITLE = 22; // pixels of the screen: names of a lane and of its blocks, above it,
const NAMES = 46; // names and shapes of its parts, below it,
const BUS = 14; // and between two lanes what the second reads of the first
const FULL_BLOCKS = 2; // so few blocks in a lane are always drawn whole

// The maps of a lane in so many columns that it fills a screen, and without a hole.
function columnsOf(lane, isOnly) {
  const attentions = lane.stages.filter((stage) => stage.kind === "heads");
  if (!attentions.length) return 1;
  const heads = attentions[0].shape[0];
  const most = Math.min(Math.ceil(Math.sqrt(heads)), 0.4 + Math.sqrt(((isOnly ? 3 : 6) * heads) / attentions.length));
  let columns = Math.max(1, Math.floor(most));
  while (heads % columns) columns -= 1;
  return columns;
}

// wideAs: the height of the lane that the width of a map follows; rows may be higher, to be read.
function headGrid(stage, high, columns, wideAs) {
  const [heads, rows, keys] = stage.shape;
  const lines = Math.ceil(heads / columns);
  const gap = 5;
  const mapHigh = Math.max(18, (high - gap * (lines - 1)) / lines);
  const mapWide = Math.min(Math.max(18, (wideAs - gap * (lines - 1)) / lines) * Math.max(0.6, Math.min(2.4, keys / rows)), 260);
  return { columns, lines, gap, mapHigh, mapWide };
}

function widthOf(stage, high, isCompact, { textWide, inRow, unit, wideAs }) {
  if (stage.kind === "tokens") return textWide;
  if (stage.kind === "image") return Math.min(high, 240);
  if (stage.kind === "answers") return unit * (stage.were.length ? 200 : 130);
  if (stage.kind === "heads") {
    const { columns, gap, mapWide } = headGrid(stage, high, inRow, wideAs);
    return columns * mapWide + (columns - 1) * gap;
  }
  if (isCompact) return stage.isNorm ? 0 : 14;
  return stage.isNorm ? 18 : Math.max(30, Math.min(64, stage.columns));
}

// open: "lane block" of the block that is drawn whole, or "". measure: text -> its width. scaleOf: how
// large a picture so wide and high is drawn at first; texts keep their size, so at small scale they need more room.
export function layout(view, open, measure, scaleOf) {
  let laid = place(view, open, measure, 1);
  for (let round = 0; round < 3; round += 1) laid = place(view, open, measure, 1 / Math.min(1, scaleOf(laid.w, laid.h)));
  return laid;
}

function place(view, open, measure, unit) {
  const places = [];
  const blocks = [];
  const lanes = [];
  let top = TITLE * unit;
  let wide = 0;
  view.lanes.forEach((lane, at) => {
    const n = lane.tokens.length;
    const isOnly = view.lanes.length === 1;
    const row = isOnly ? Math.min(2 * ROW, ONLY_HIGH / n) : Math.min(Math.max(ROW, LEGIBLE * unit), LANE_HIGH / n);
    const high = Math.max(n * row, isOnly ? 220 : 90);
    const wideAs = isOnly ? high : Math.max(n * Math.min(ROW, LANE_HIGH / n), 90);
    const textWide = unit * Math.min(150, 12 + Math.max(...lane.tokens.map((name) => measure(name)), 10));
    const count = Math.max(0, ...lane.stages.map((stage) => stage.block));
    const inRow = columnsOf(lane, isOnly);
    let x = 0;
    let last = null;
    lane.stages.forEach((stage, place) => {
      const isCompact = stage.block > 0 && count > FULL_BLOCKS && open !== `${at} ${stage.block}`;
      const w = widthOf(stage, high, isCompact, { textWide, inRow, unit, wideAs });
      const isFlow = stage.kind === "heads";
      if (last !== null && w > 0) {
        x += isFlow || last.stage.kind === "heads" ? (isCompact ? 16 : FLOW) : (isCompact ? 7 : GAP);
        if (stage.block !== last.stage.block) x += isCompact ? 6 : 12;
      }
      const isLone = stage.rows.length > 0 && stage.rows[0] < 0;
      const rows = stage.rows.length;
      let y = top;
      let h = n * row;
      if (isLone) {
        h = stage.kind === "answers" ? Math.min(high, 20 * unit * view.answers) : row * rows;
        y = top + (n * row - h) / 2;
      } else if (rows && rows < n) {
        y = top + stage.rows[0] * row;
        h = rows * row;
      }
      const spot = { stage, lane: at, place, x, y, w, h, row, isCompact, grid: null };
      if (stage.kind === "heads") {
        spot.grid = headGrid(stage, high, inRow, wideAs);
        spot.h = high;
      }
      if (stage.kind === "image") { spot.h = w; spot.y = top + Math.max(0, (n * row - w) / 2); }
      places.push(spot);
      if (w > 0) { x += w; last = spot; }
      if (stage.block > 0 && w > 0) {
        const block = blocks.find((one) => one.lane === at && one.block === stage.block);
        if (block) block.w = x + 8 - block.x;
        else blocks.push({ lane: at, block: stage.block, x: spot.x - 8, y: top - 4, w: w + 16, h: high + 8, isCompact });
      }
    });
    lanes.push({ at, y: top, h: high, row, w: x });
    wide = Math.max(wide, x);
    top += high + (NAMES + BUS + TITLE) * unit;
  });
  return { places, blocks, lanes, w: wide, h: top - (BUS + TITLE) * unit, unit, bus: (NAMES + 0.6 * BUS) * unit };
}

// The rectangle of one head's map in a spot.
export function mapAt(spot, head) {
  const { columns, gap, mapHigh, mapWide } = spot.grid;
  return {
    x: spot.x + (head % columns) * (mapWide + gap),
    y: spot.y + Math.floor(head / columns) * (mapHigh + gap),
    w: mapWide,
    h: mapHigh,
  };
}

// The middle of a row of a lane.
export const rowMiddle = (lane, row) => lane.y + (row + 0.5) * lane.row;

// What lies under a point: { spot, head, row, column } or { block } or null.
export function under(laid, x, y) {
  for (const spot of laid.places) {
    if (x < spot.x || x >= spot.x + spot.w || y < spot.y || y >= spot.y + spot.h) continue;
    if (spot.stage.kind !== "heads") {
      const rows = Math.max(1, spot.stage.rows.length);
      const [across, down] = [(x - spot.x) / spot.w, (y - spot.y) / spot.h];
      const side = Math.sqrt(rows);
      const row = spot.stage.kind === "image" ? Math.floor(down * side) * side + Math.floor(across * side) : Math.min(rows - 1, Math.floor(down * rows));
      const column = Math.min(spot.stage.columns - 1, Math.floor(((x - spot.x) / spot.w) * spot.stage.columns));
      return { spot, head: null, row, column };
    }
    const [heads, rows, keys] = spot.stage.shape;
    for (let head = 0; head < heads; head += 1) {
      const map = mapAt(spot, head);
      if (x < map.x || x >= map.x + map.w || y < map.y || y >= map.y + map.h) continue;
      return {
        spot, head, row: Math.floor(((y - map.y) / map.h) * rows), column: Math.floor(((x - map.x) / map.w) * keys),
      };
    }
    return { spot, head: null, row: null, column: null };
  }
  const block = laid.blocks.find((one) => x >= one.x && x < one.x + one.w && y >= one.y - 16 && y < one.y + one.h);
  return block ? { block } : null;
}
