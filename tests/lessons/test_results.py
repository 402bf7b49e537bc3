"""Results: a line that nobody can change, and what else is made of it."""

import base64
import json
import os
import stat
import sys
from pathlib import Path

import pytest

from tests.lessons.made import finished_run, record, written
from tfm_core.choices.presets import PRESETS
from tfm_core.cli import FAILED, main
from tfm_core.lessons import attempts, results
from tfm_core.lessons.lesson import Lesson, read
from tfm_core.lessons.task import Verdict
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

pytestmark = pytest.mark.quick

ANN, BEN = "a" * 64, "b" * 64


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    return RunStore(recorded=None)


@pytest.fixture
def lesson(tmp_path: Path) -> Lesson:
    return read(written(tmp_path))


def line_of(lesson: Lesson, store: RunStore, who: str = ANN, *, right: bool = True) -> str:
    run = finished_run(store, PRESETS["copy"].experiment, accuracy=0.97, lesson="width")
    verdict = Verdict(right, "", run.id, {"accuracy": 0.97})
    record("width", who, "why", answer="this", verdict=Verdict(True, ""))
    mine = record("width", who, "smallest", answer="16", verdict=verdict)
    return results.line(lesson, mine, store=store, key=results.server_key())


def standings(text: str) -> list[str]:
    return [one.standing for one in results.check([("file", text)], results.server_key())]


def test_a_line_says_what_was_done_and_is_good(lesson: Lesson, store: RunStore) -> None:
    attempts.give_name("width", ANN, "Ann")
    line = line_of(lesson, store)
    assert "\n" not in line
    (checked,) = results.check([("file", f"\n\n> {line}, by mail")], results.server_key())
    assert (checked.standing, checked.number) == ("good", 3)
    values = checked.values
    assert (values["lesson"], values["name"], values["version"]) == (
        "width",
        "Ann",
        lesson.fingerprint,
    )
    answer = values["answers"]["smallest"]
    assert (answer["answer"], answer["right"], answer["figures"]) == (
        "16",
        True,
        {"accuracy": 0.97},
    )
    assert store.get(answer["run"]).meta.lesson == "width"
    assert len(answer["configuration"]) == 16
    assert (checked.n_solved, checked.n_tasks) == (2, 3)


def test_a_changed_line_is_refused_wherever_it_was_changed(lesson: Lesson, store: RunStore) -> None:
    line = line_of(lesson, store, right=False)
    version, payload, signature = line.split(".")
    values = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    values["answers"]["smallest"]["right"] = True
    text = json.dumps(values, separators=(",", ":")).encode()
    better = base64.urlsafe_b64encode(text).decode().rstrip("=")
    assert standings(line) == ["good"]
    assert standings(f"{version}.{better}.{signature}") == ["forged"]
    other = ("0" if signature[0] != "0" else "1") + signature[1:]
    assert standings(f"{version}.{payload}.{other}") == ["forged"]
    for at in range(0, len(payload), 97):
        changed = payload[:at] + ("A" if payload[at] != "A" else "B") + payload[at + 1 :]
        (standing,) = standings(f"{version}.{changed}.{signature}")
        assert standing in ("forged", "other server")


def test_a_line_of_another_server_and_one_that_stands_twice_are_told_apart(
    lesson: Lesson, store: RunStore
) -> None:
    mine, theirs = line_of(lesson, store), line_of(lesson, store, BEN)
    assert standings(f"{mine}\n{theirs}\nwords\n{mine}") == ["good", "good", "duplicate"]
    (store.root / attempts.FOLDER / results.KEY_FILE).write_text("another server's " * 2)
    assert standings(mine) == ["other server"]


def test_the_best_try_of_a_participant_counts_wherever_it_stands(
    lesson: Lesson, store: RunStore
) -> None:
    first = record("width", ANN, "why", answer="that", verdict=Verdict(False, ""))
    worse = results.line(lesson, first, store=store, key=results.server_key())
    better = line_of(lesson, store)
    assert standings(f"{better}\n{worse}") == ["good", "duplicate"]
    assert standings(f"{worse}\n{better}") == ["duplicate", "good"]


def test_no_result_of_a_text_is_lost(lesson: Lesson, store: RunStore) -> None:
    lines = [line_of(lesson, store, f"{number:064x}"[::-1]) for number in range(41)]
    assert standings(json.dumps([{"answer": line} for line in lines])) == ["good"] * 41
    first, second, third = lines[:3]
    wrapped = "\n> ".join(first[at : at + 76] for at in range(0, len(first), 76))
    assert standings(f"{wrapped}\n{second[:90]}\u200b{second[90:]}") == ["good", "good"]
    damaged = f"{first[:60]}!{first[61:]} {second[:-9]} {third.upper()}"
    assert standings(damaged) == ["damaged", "damaged", "damaged"]


def test_nonsense_is_no_result(store: RunStore) -> None:
    for payload in ("A" * 40, base64.urlsafe_b64encode(b'{"answers": 5, "tasks": 1}').decode()):
        text = f"tfm1.{payload.rstrip('=')}.{'0' * 64}"
        assert standings(text) == ["forged"]
    assert standings("no result here") == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_the_key_is_made_once_and_for_its_owner_alone(store: RunStore) -> None:
    key = results.server_key()
    path = store.root / attempts.FOLDER / results.KEY_FILE
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert results.server_key() == key
    assert key.decode() not in results.server_mark(key)
    path.write_bytes(b"short")
    with pytest.raises(StudentError, match="damaged"):
        results.server_key()


def test_the_command_prints_a_table_and_says_which_lines_are_bad(
    lesson: Lesson, store: RunStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = tmp_path / "good.txt"
    good.write_text(f"{line_of(lesson, store)}\n{line_of(lesson, store, BEN)}\n", encoding="utf-8")
    assert main(["lesson", "verify", str(good)]) == 0
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()] == [
        "status",
        "good",
        "good",
    ]
    bad = tmp_path / "bad.txt"
    line = line_of(lesson, store)
    bad.write_text(f"{line[:-1]}{'0' if line[-1] != '0' else '1'}\n", encoding="utf-8")
    assert main(["lesson", "verify", str(good), str(bad), "--json"]) == FAILED
    rows = json.loads(capsys.readouterr().out)
    assert [row["standing"] for row in rows] == ["good", "good", "forged"]
    assert rows[2]["file"] == str(bad)
    (tmp_path / "none.txt").write_text("nothing", encoding="utf-8")
    assert main(["lesson", "verify", str(tmp_path / "none.txt")]) == 2
    assert main(["lesson", "verify", str(tmp_path / "missing.txt")]) == 2
    assert "cannot be read" in capsys.readouterr().err
