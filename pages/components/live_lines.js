// The log of a published run: lines that only grow, folded into the curves that the stage draws.
// tfm_core/hosting/published/lines.py says what a line is.

export const begun = () => ({ batch: [], validation: [], average: [], test: [], best: [], snapshots: new Map() });

// Take in whole lines, as bytes of JSON; one that cannot be read, or of a kind to come, is left out.
export function fold(curves, bytes) {
  new TextDecoder().decode(bytes).split("\n").forEach((text) => {
    let line = null;
    try { line = JSON.parse(text); } catch { return; }
    if (Array.isArray(line) && Number.isFinite(line[1])) take(curves, line);
  });
}

function take(curves, [kind, step, ...values]) {
  if (kind === "snapshot") curves.snapshots.set(step, values[0]);
  else if (kind === "gone") curves.snapshots.delete(step);
  else if (kind === "best") curves.best = [[step, ...values]];
  else if (kind === "back") {
    ["batch", "validation", "average", "test"].forEach((name) => { curves[name] = curves[name].filter(([at]) => at <= step); });
    curves.best = [];
  } else if (Array.isArray(curves[kind])) {
    const rows = curves[kind];
    while (rows.length && rows[rows.length - 1][0] >= step) rows.pop();
    rows.push([step, ...values]);
  }
}

// Roles of both figures in the order in which they are drawn: the kind of line, and which value.
const ROLES = [
  ["batch", "batch", 1, 2],
  ["training", "batch", 3, 4],
  ["validation", "validation", 1, 2],
  ["whole", "validation", null, 3],
  ["average", "average", 1, 2],
  ["average_whole", "average", null, 3],
  ["test", "test", 1, 2],
  ["best", "best", 1, 2],
];

// The lines as the stage takes them. colours: of each role. hasWholes: whether whole sequences count.
export function linesOf(curves, colours, hasWholes) {
  const lines = ["loss", "accuracy"].flatMap((quantity, number) => ROLES.flatMap(([role, kind, ...columns]) => {
    const column = columns[number];
    if (column === null || (role.endsWith("whole") && !hasWholes)) return [];
    const rows = curves[kind];
    return [{ quantity, role, steps: rows.map((row) => row[0]), values: rows.map((row) => row[column] ?? null), colour: colours[role] }];
  }));
  return lines.filter((line) => line.values.some((value) => value !== null));
}
