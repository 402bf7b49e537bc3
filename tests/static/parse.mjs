// Reads [[name, text], ...] from standard input and prints [[name, line, message], ...] of the
// texts that are no ES modules. Run with --experimental-vm-modules.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { SourceTextModule } from "node:vm";

const problems = [];
for (const [name, text] of JSON.parse(readFileSync(0, "utf-8"))) {
  try {
    new SourceTextModule(text);
  } catch (error) {
    const check = ["--input-type=module", "--check", "-"]; // it alone tells the line
    const said = spawnSync(process.execPath, check, { input: text, encoding: "utf-8" }).stderr;
    problems.push([name, Number(said.match(/^\[stdin\]:(\d+)/)?.[1] ?? 1), error.message]);
  }
}
process.stdout.write(JSON.stringify(problems));
