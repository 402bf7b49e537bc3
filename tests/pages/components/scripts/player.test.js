import assert from "node:assert/strict";
import test from "node:test";

import { Player } from "../../../../pages/components/player.js";
import { browser } from "./browser.js";

function playerOf(count, settings = {}) {
  const pass = browser();
  const heard = [];
  const player = new Player({}, { moved: () => heard.push(player.position), over: (isEnd) => heard.push(isEnd), ...settings });
  player.count = count;
  return { player, heard, pass };
}

test("a training is played to its end, and from its start again", () => {
  const { player, heard, pass } = playerOf(3);
  player.scrub(1);
  assert.ok(!player.follows);
  player.start();
  pass(400);
  assert.ok(player.position > 1 && player.position < 2 && player.frame === 1);
  pass(2000);
  assert.deepEqual([player.position, player.playing, player.follows, heard.at(-1)], [2, false, true, true]);
  player.start();
  assert.equal(player.position, 0);
  player.pause();
  assert.equal(heard.at(-1), false);
  const one = playerOf(1);
  one.player.start();
  assert.ok(!one.player.playing);
});

test("it stays where there is something to read, waits for what is on its way, and begins anew in a loop", () => {
  let isWaiting = false;
  const { player, pass } = playerOf(3, { readAt: (at) => (at === 1 ? 1000 : 0), isWaiting: () => isWaiting });
  player.loops = true;
  player.start();
  pass(900);
  assert.equal(player.position, 1);
  pass(900);
  assert.equal(player.position, 1);
  isWaiting = true;
  pass(5000);
  assert.equal(player.position, 1);
  isWaiting = false;
  pass(900);
  assert.equal(player.position, 2);
  pass(1500);
  assert.ok(player.playing && player.position === 2);
  pass(700);
  assert.ok(player.playing && player.position < 1);
});

test("it rests out of sight, a hand stops it, and single steps lead from what lies between to a snapshot", () => {
  const { player, pass } = playerOf(4);
  player.start();
  pass(300);
  player.see(false);
  const at = player.position;
  pass(3000);
  assert.equal(player.position, at);
  player.see(true);
  pass(300);
  assert.ok(player.position > at);
  player.scrub(1.5);
  assert.ok(!player.playing);
  player.move(1);
  assert.equal(player.position, 2);
  player.place(1.5);
  player.move(-1);
  assert.equal(player.position, 1);
  player.smooth = false;
  player.place(2.7);
  assert.equal(player.shown, 2);
  player.arrive(2);
  player.move(1);
  assert.ok(player.follows);
});
