// The numbers of a figure as tables: of plotly's figures by their kinds of lines, of our own by their data.
//
// A table is {caption, head, rows}; the first cell of each row names it.

import { actButton, bytes, download, element, whole } from "./dom.js";

const [MAX_ROWS, MAX_COLUMNS] = [200, 40]; // on screen; the file has them all

const SIGNS = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&#39;": "'", "&nbsp;": " ", "&amp;": "&" };
const plain = (text) => String(text ?? "").replace(/(?:\s*<\/?(?:br|b|i|em|sub|sup|span|a)\b[^>]*>\s*)+/g, " ")
  .replace(/&(?:lt|gt|quot|#x27|#39|nbsp|amp);/g, (sign) => SIGNS[sign]).trim();
const titleOf = (axis) => plain(axis?.title?.text);
const axisOf = (layout, letter, trace) => layout[`${letter}axis${(trace[`${letter}axis`] ?? letter).slice(1)}`] ?? {};
const isGiven = (value) => value !== null && value !== undefined && !Number.isNaN(value);

// What an axis says at a place: its words there, if it has any.
function said(axis, place) {
  const at = axis.ticktext && axis.tickvals ? axis.tickvals.indexOf(place) : -1;
  const words = at >= 0 && axis.ticktext[at];
  return words || typeof place !== "number" ? plain(words || place) : place;
}

// The cells of a map (rows of values): a row of it is a row of the table.
function mapTable(trace, layout) {
  const [across, up] = [axisOf(layout, "x", trace), axisOf(layout, "y", trace)];
  const cells = decoded(trace.z);
  const [x, y] = [decoded(trace.x), decoded(trace.y)];
  const columns = Array.from(cells[0] ?? [], (_cell, i) => said(across, x?.[i] ?? i));
  return {
    caption: plain(trace.name) || titleOf(trace.colorbar) || titleOf(layout),
    head: [titleOf(up), ...columns],
    rows: Array.from(cells, (row, i) => [said(up, y?.[i] ?? i), ...row]),
  };
}

// Lines and bars that share their axes are columns of one table; each place has one row.
function lineTable(traces, layout) {
  const isFlat = traces.every((trace) => trace.type === "bar" && trace.orientation === "h");
  const [along, value] = isFlat ? ["y", "x"] : ["x", "y"];
  const axes = [along, value].map((letter) => axisOf(layout, letter, traces[0]));
  const rows = new Map();
  traces.forEach((trace, n) => {
    const values = decoded(trace[value]);
    const places = decoded(trace[along]) ?? Array.from(values, (_value, i) => i);
    places.forEach((place, i) => {
      if (!isGiven(place)) return;
      if (!rows.has(place)) rows.set(place, [said(axes[0], place), ...traces.map(() => null)]);
      rows.get(place)[n + 1] = values[i];
    });
  });
  const isOrdered = [...rows.keys()].every((place) => typeof place === "number");
  const ordered = isOrdered ? [...rows].sort(([one], [other]) => one - other) : [...rows];
  return {
    caption: titleOf(axes[1]),
    head: [titleOf(axes[0]), ...traces.map((trace) => plain(trace.name) || titleOf(axes[1]))],
    rows: ordered.map(([, row]) => row),
  };
}

// Points, which may share a place: a row each, with what is written beside it.
function pointTable(trace, layout) {
  const scene = layout[trace.scene ?? "scene"] ?? {};
  const letters = ["x", "y", "z"].filter((letter) => trace[letter]);
  const axes = letters.map((letter) => (trace.type === "scatter3d" ? scene[`${letter}axis`] ?? {} : axisOf(layout, letter, trace)));
  const values = letters.map((letter) => decoded(trace[letter]));
  const texts = [trace.text, trace.hovertext].find((one) => Array.isArray(one)) ?? [];
  return {
    caption: plain(trace.name) || titleOf(axes[1]),
    head: ["", ...axes.map((axis, i) => titleOf(axis) || letters[i])],
    rows: Array.from(values[0], (_value, i) => [plain(texts[i] ?? i + 1), ...values.map((one, n) => said(axes[n], one[i]))]),
  };
}

const treeTable = ({ ids, values }) => ({
  caption: "", head: ["", ""], rows: Array.from(decoded(values), (value, i) => [decoded(ids)[i], value]),
});

// A line that passes a place twice is told point by point.
function isLine({ type = "scatter", mode = "lines", x, y, orientation }) {
  if (type !== "bar" && !(type === "scatter" && mode.includes("lines"))) return false;
  const places = Array.from(decoded(type === "bar" && orientation === "h" ? y : x) ?? []).filter(isGiven);
  return new Set(places).size === places.length;
}

// The tables of a plotly figure. What it draws as a mere aid (without hover) and pictures are left out.
export function tablesOf({ data, layout }) {
  const traces = data.filter((trace) => trace.hoverinfo !== "skip" && trace.type !== "image");
  const groups = new Map(); // by axes
  const tables = [];
  traces.forEach((trace) => {
    if (trace.type === "heatmap") tables.push(() => mapTable(trace, layout));
    else if (trace.type === "treemap") tables.push(() => treeTable(trace));
    else if (!isLine(trace)) tables.push(() => pointTable(trace, layout));
    else {
      const axes = `${trace.xaxis ?? "x"} ${trace.yaxis ?? "y"} ${trace.type === "bar" && trace.orientation === "h"}`;
      if (!groups.has(axes)) {
        const group = [];
        groups.set(axes, group);
        tables.push(() => lineTable(group, layout));
      }
      groups.get(axes).push(trace);
    }
  });
  return tables.map((make) => make()).filter(({ rows }) => rows.length);
}

export const shownCell = (cell) => {
  if (!isGiven(cell)) return "";
  return typeof cell === "number" && !Number.isInteger(cell) ? String(Number(cell.toPrecision(4))) : String(cell);
};

const quoted = (cell) => {
  const text = typeof cell === "number" ? String(isGiven(cell) ? cell : "") : String(cell ?? "");
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text; // a spreadsheet would take a token for a formula
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

export const csvOf = (tables) => tables.map(({ caption, head, rows }) => (
  [...(tables.length > 1 && caption ? [[caption]] : []), head, ...rows].map((row) => Array.from(row, quoted).join(",")).join("\r\n")
)).join("\r\n\r\n");

function drawn({ caption, head, rows }, words) {
  const first = head.slice(0, MAX_COLUMNS + 1).map((name, i) => {
    const isText = rows.length && rows.every((row) => typeof row[i] === "string");
    const cell = element(i || name ? "th" : "td", isText ? "text" : "", shownCell(name));
    if (i || name) cell.scope = "col";
    return cell;
  });
  const lines = rows.slice(0, MAX_ROWS).map((row) => element("tr", "", ...row.slice(0, MAX_COLUMNS + 1).map((cell, i) => {
    const made = element(i ? "td" : "th", typeof cell === "string" ? "text" : "", shownCell(cell));
    if (!i) made.scope = "row";
    return made;
  })));
  const top = element("thead", "", element("tr", "", ...first));
  const table = element("table", "", caption && element("caption", "", caption), top, element("tbody", "", ...lines));
  const box = element("div", "", table);
  if (rows.length > MAX_ROWS || head.length > MAX_COLUMNS + 1) {
    const shown = [Math.min(rows.length, MAX_ROWS), rows.length, Math.min(head.length - 1, MAX_COLUMNS), head.length - 1];
    box.append(element("p", "cut", ["{rows}", "{all_rows}", "{columns}", "{all_columns}"].reduce(
      (sentence, name, i) => sentence.replace(name, whole(shown[i])), words.cut)));
  }
  return box;
}

function saveCsv(tables) {
  const url = URL.createObjectURL(new Blob(["\ufeff", csvOf(tables)], { type: "text/csv" }));
  download("figure.csv", url);
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// Open the tables over the page; closing gives the focus back. near: what they are of. more: buttons.
export function openTables(near, name, tables, words, ...more) {
  const dialog = element("dialog", "data-table", { "aria-label": `${words.table}: ${name}` });
  const shown = tables.length ? tables.map((table) => drawn(table, words)) : [element("p", "", words.none)];
  const room = element("div", "tables", ...shown, { tabIndex: 0, role: "group", "aria-label": words.table }); // arrow keys scroll it
  dialog.append(
    element("div", "table-bar", ...more, actButton("", words.csv, () => saveCsv(tables)), actButton("", words.close, () => dialog.close())),
    room,
  );
  dialog.addEventListener("keydown", (event) => event.stopPropagation()); // the page has keys of its own
  dialog.addEventListener("close", () => dialog.remove());
  near.append(dialog);
  dialog.showModal();
}

// Arrays as plotly sends them: base64 of numbers, of one dimension or two.

const KINDS = {
  f4: Float32Array, f8: Float64Array, i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array,
};

// The values of an array, or its rows; what is not packed is returned as it is.
export function decoded(packed) {
  if (!packed?.bdata) return packed;
  const values = new KINDS[packed.dtype](bytes(packed.bdata).buffer);
  const [rows, columns] = String(packed.shape ?? "").split(",").map(Number);
  if (!columns) return values;
  return Array.from({ length: rows }, (_row, i) => values.subarray(i * columns, (i + 1) * columns));
}
