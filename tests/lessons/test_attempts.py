"""Answers are kept beside the runs: one file a participant, safe with many writers, and bounded."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lessons.made import add_run, finished_run, record
from tfm_core.choices.presets import PRESETS
from tfm_core.lessons import attempts
from tfm_core.lessons.attempts import Attempt
from tfm_core.lessons.task import Verdict
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

pytestmark = pytest.mark.quick

ANN, BEN = "a" * 64, "b" * 64
RIGHT, WRONG = Verdict(True, "Yes.", "run-12345", {"accuracy": 0.97}), Verdict(False, "No.")


def put(root: Path, who: str, task: str, verdict: Verdict, answer: str = "7") -> Attempt:
    return record("width", who, task, answer=answer, verdict=verdict, root=root)


def test_answers_of_each_participant_come_back(tmp_path: Path) -> None:
    assert attempts.attempts("width", root=tmp_path) == []
    put(tmp_path, ANN, "why", WRONG, "that")
    put(tmp_path, ANN, "why", RIGHT, "this")
    put(tmp_path, ANN, "why", WRONG, "that")  # a right one stays
    put(tmp_path, BEN, "half", WRONG)
    add_run("width", BEN, "run-67890", root=tmp_path)
    attempts.give_name("width", BEN, "  Ben\n Kim ", root=tmp_path)
    ann, ben = attempts.attempts("width", root=tmp_path)
    assert (ann.lesson, ann.browser, ann.name) == ("width", ANN, None)
    answer = ann.answers["why"]
    assert (answer.answer, answer.is_right, answer.tries) == ("this", True, 2)
    assert (answer.run, dict(answer.figures)) == ("run-12345", {"accuracy": 0.97})
    assert (ben.name, ben.runs) == ("Ben Kim", ("run-67890",))
    assert ann.is_solved("why")
    assert not ben.is_solved("half")
    assert attempts.attempt("width", BEN, root=tmp_path) == ben
    assert attempts.attempts("height", root=tmp_path) == []


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    def one(number: int) -> None:
        who = f"{number % 3:x}" * 64
        put(tmp_path, who, f"task-{number}", RIGHT)
        add_run("width", who, f"run-{number:05}", root=tmp_path)

    with ThreadPoolExecutor(7) as pool:
        list(pool.map(one, range(30)))
    found = attempts.attempts("width", root=tmp_path)
    assert [len(each.answers) for each in found] == [10, 10, 10]
    assert [len(each.runs) for each in found] == [10, 10, 10]


def test_bad_files_are_skipped_with_a_reason(tmp_path: Path) -> None:
    put(tmp_path, ANN, "why", RIGHT)
    folder = tmp_path / attempts.FOLDER / "width"
    good = json.loads((folder / f"{ANN}.json").read_text(encoding="utf-8"))
    wrong = [
        "{",
        "[]",
        json.dumps(good | {"answers": {"why": {"answer": "x"}}}),
        json.dumps(good | {"runs": ["../etc"]}),
        json.dumps(good | {"name": "a\nb"}),
        " " * 70_000,
    ]
    for number, text in enumerate(wrong):
        (folder / f"{number:x}{'c' * 63}.json").write_text(text, encoding="utf-8")
    (folder / "somebody.json").write_text(json.dumps(good), encoding="utf-8")
    (folder / f"{'d' * 64}.json").symlink_to(folder / f"{ANN}.json")
    assert [each.browser for each in attempts.attempts("width", root=tmp_path)] == [ANN]
    put(tmp_path, "0" + "c" * 63, "why", RIGHT)  # an answer replaces what was damaged
    assert len(attempts.attempts("width", root=tmp_path)) == 2


def test_what_is_no_participant_or_lesson_is_refused(tmp_path: Path) -> None:
    for lesson, who in (("../x", ANN), ("width", "../x"), ("Width", ANN), ("width", "A" * 64)):
        with pytest.raises(StudentError):
            record(lesson, who, "why", answer="", verdict=RIGHT, root=tmp_path)
        assert attempts.attempt(lesson, who, root=tmp_path).answers == {}
    assert attempts.attempts("../x", root=tmp_path) == []
    assert not list(tmp_path.rglob("*.json"))


def test_files_and_their_number_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "MAX_PARTICIPANTS", 2)
    for number in range(100):
        add_run("width", ANN, f"run-{number:05}", root=tmp_path)
    put(tmp_path, ANN, "why", RIGHT, "x" * 10_000)
    put(tmp_path, BEN, "why", RIGHT)
    with pytest.raises(StudentError, match="2 participants"):
        put(tmp_path, "c" * 64, "why", RIGHT)
    old = time.time() - 61 * 24 * 3600
    os.utime(tmp_path / attempts.FOLDER / "width" / f"{BEN}.json", (old, old))
    put(tmp_path, "c" * 64, "why", RIGHT)  # in the place of one that nobody changed for long
    (ann, _cat) = attempts.attempts("width", root=tmp_path)
    assert ann.runs == tuple(f"run-{number:05}" for number in range(40, 100))
    assert len(ann.answers["why"].answer) == 200
    with pytest.raises(StudentError, match="characters"):
        attempts.give_name("width", ANN, "n" * 61, root=tmp_path)


def test_a_reset_forgets_answers_and_a_copy_belongs_to_no_lesson(tmp_path: Path) -> None:
    store = RunStore(tmp_path, recorded=None)
    run = finished_run(store, PRESETS["copy"].experiment, accuracy=0.9, lesson="width")
    add_run("width", ANN, run.id, root=tmp_path)
    put(tmp_path, BEN, "why", RIGHT)
    assert attempts.reset("width", root=tmp_path) == 2
    assert attempts.attempts("width", root=tmp_path) == []
    assert store.get(run.id).meta.lesson == "width"
    assert [kept.id for kept in store.kept()] == [run.id]  # the folder of answers is no run
    store = RunStore(tmp_path, recorded=None)
    run = store.create(PRESETS["copy"].experiment, lesson="width", state="stopped")
    assert store.get(run.id).meta.lesson == "width"
    folder = run.folder / "checkpoints" / "last"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "checkpoint.safetensors").touch()
    assert store.fork(run.id, steps=700).meta.lesson is None
