import assert from "node:assert/strict";
import test from "node:test";

import { phrasebook } from "../../../../pages/components/streamlit_words.js";

const KOREAN = { Open: "열기", "Remove {label}": "{label} 지우기", "{size} per file": "파일당 {size}" };

test("a phrase and a phrase with a name are replaced, whatever stands around them stays", () => {
  const said = phrasebook(KOREAN);
  assert.equal(said("Open"), "열기");
  assert.equal(said("\n Open "), "\n 열기 ");
  assert.equal(said("Remove $& a run"), "$& a run 지우기");
  assert.equal(said("20MB per file"), "파일당 20MB");
  assert.equal(said("Open the door"), "Open the door");
  assert.equal(said("  "), "  ");
});

test("what was replaced is found again in another language", () => {
  const german = phrasebook({ Open: "Öffnen" }, KOREAN);
  assert.equal(german("열기"), "Öffnen");
  assert.equal(german("a run 지우기"), "Remove a run");
  assert.equal(phrasebook({}, KOREAN)("파일당 20MB"), "20MB per file");
});
