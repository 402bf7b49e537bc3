import assert from "node:assert/strict";
import test from "node:test";

import { begun, fold, linesOf } from "../../../../pages/components/live_lines.js";
import { changing, grown } from "../../../../pages/components/live_files.js";

const bytes = (text) => new TextEncoder().encode(text);
const logged = (...lines) => bytes(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));

// A server of one file, that remembers what it was asked: { content, tag, date, ranges }.
function serve(file) {
  const asked = [];
  globalThis.fetch = async (name, { headers, cache }) => {
    asked.push({ name, ...headers, cache });
    if (file.status) return new Response("", { status: file.status });
    if (file.tag && headers["If-None-Match"] === file.tag) return new Response(null, { status: 304 });
    if (file.date && headers["If-Modified-Since"] === file.date) return new Response(null, { status: 304 });
    const said = {};
    if (file.tag) said.ETag = file.tag;
    if (file.date) said["Last-Modified"] = file.date;
    if (file.now) said.Date = file.now;
    const content = bytes(file.content);
    const range = /bytes=(\d+)-(\d+)/.exec(headers.Range ?? "");
    if (!file.ranges || !range) return new Response(content, { headers: said });
    const [from, to] = [Number(range[1]), Number(range[2]) + 1];
    if (from >= content.length) return new Response("", { status: 416 });
    return new Response(content.slice(from, to), { status: 206, headers: said });
  };
  return asked;
}

test("a file that changes is sent again only when it did", async () => {
  const file = { content: '{"step": 1}', tag: '"a"' };
  const asked = serve(file);
  const ask = changing("run.json");
  assert.deepEqual((await ask()).values, { step: 1 });
  assert.equal((await ask()).values, null);
  Object.assign(file, { content: '{"step": 2}', tag: '"b"' });
  assert.deepEqual((await ask()).values, { step: 2 });
  assert.deepEqual(asked.map((one) => one["If-None-Match"]), [undefined, '"a"', '"a"']);
  assert.ok(asked.every(({ cache }) => cache === "no-store"));
});

test("without tags the date does, and says how old it is by the server's own clock", async () => {
  const date = "Mon, 23 Nov 2026 03:00:00 GMT";
  const asked = serve({ content: "{}", date, now: "Mon, 23 Nov 2026 03:01:30 GMT" });
  const ask = changing("run.json");
  assert.deepEqual(await ask(), { values: {}, age: 90 });
  assert.deepEqual(await ask(), { values: null, age: null });
  assert.equal(asked[1]["If-Modified-Since"], date);
});

test("half a file is asked for again", async () => {
  const file = { content: '{"step": ', tag: '"a"' };
  const asked = serve(file);
  const ask = changing("run.json");
  await assert.rejects(ask(), SyntaxError);
  file.content = '{"step": 3}';
  assert.deepEqual((await ask()).values, { step: 3 });
  assert.equal(asked[1]["If-None-Match"], undefined);
});

test("a refusal says of which file and why", async () => {
  serve({ status: 404 });
  await assert.rejects(changing("run.json")(), { file: "run.json", status: 404 });
});

for (const ranges of [true, false]) {
  test(`of a log that grows whole lines come, ${ranges ? "by ranges" : "without any"}`, async () => {
    const lines = ['["batch",1]\n', '["batch",2]\n'];
    const file = { content: lines[0] + lines[1].slice(0, 5), ranges };
    serve(file);
    const first = await grown("log", 0, 24);
    assert.equal(new TextDecoder().decode(first), lines[0]);
    file.content = lines.join("");
    assert.equal(new TextDecoder().decode(await grown("log", first.length, 24)), lines[1]);
  });
}

test("what lies behind the end that was told is left for another time", async () => {
  serve({ content: "[1]\n[2]\n[3]\n", ranges: false });
  assert.equal(new TextDecoder().decode(await grown("log", 4, 8)), "[2]\n");
});

test("a copy that is behind sends nothing, and that is no error", async () => {
  serve({ content: "[1]\n", ranges: true });
  assert.equal((await grown("log", 4, 8)).length, 0);
});

const COLOURS = { batch: "#1", training: "#2", validation: "#3", whole: "#4", best: "#5" };

test("lines are folded into what the stage draws", () => {
  const curves = begun();
  fold(curves, logged(["batch", 1, 3, 0.1, 3, 0.1], ["batch", 2, 2, null, 2.5, 0.1], ["validation", 2, 2.25, 0.5, 0.25], ["snapshot", 0, "abc"]));
  const lines = linesOf(curves, COLOURS, true);
  assert.deepEqual(lines.map(({ quantity, role }) => `${quantity} ${role}`), [
    "loss batch", "loss training", "loss validation", "accuracy batch", "accuracy training", "accuracy validation", "accuracy whole",
  ]);
  assert.deepEqual(lines[1], { quantity: "loss", role: "training", steps: [1, 2], values: [3, 2.5], colour: "#2" });
  assert.deepEqual(lines[3].values, [0.1, null]);
  assert.deepEqual([...curves.snapshots], [[0, "abc"]]);
  assert.ok(linesOf(curves, COLOURS, false).every(({ role }) => role !== "whole"));
});

test("a training that goes on from before takes its later lines back", () => {
  const curves = begun();
  fold(curves, logged(["batch", 1, 3, 0, 3, 0], ["batch", 2, 2, 0, 2, 0], ["best", 2, 1, 0.5], ["back", 1], ["batch", 2, 1, 0, 1, 0]));
  assert.deepEqual(curves.batch.map(([step, loss]) => [step, loss]), [[1, 3], [2, 1]]);
  assert.deepEqual(curves.best, []);
});

test("snapshots come and go, the best is the last one told, a step is there once", () => {
  const curves = begun();
  fold(curves, logged(["snapshot", 3, "a"], ["gone", 3], ["snapshot", 3, "b"], ["best", 2, 1, 0], ["best", 5, 0.5, 0], ["test", 7, 1, 0, 0], ["test", 7, 2, 0, 0]));
  assert.deepEqual([...curves.snapshots], [[3, "b"]]);
  assert.deepEqual(curves.best, [[5, 0.5, 0]]);
  assert.deepEqual(curves.test, [[7, 2, 0, 0]]);
});

test("what cannot be read, or is of a kind to come, is left out", () => {
  const curves = begun();
  fold(curves, bytes('nonsense\n["batch"]\n["snapshots",1,2]\n["constructor",1]\n{"a":1}\n["batch",1,3,0,3,0]\n'));
  assert.deepEqual(curves.batch, [[1, 3, 0, 3, 0]]);
  assert.equal(curves.snapshots.size, 0);
});
