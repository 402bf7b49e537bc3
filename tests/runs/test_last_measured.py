"""The last measurement of a run, from the end of its events, is that of its curves."""

import json

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs.record import figures
from tfm_core.runs.record.figures import last_measured

pytestmark = pytest.mark.quick


def write(run, *records, more=""):
    lines = [json.dumps(record) + "\n" for record in records]
    (run.folder / "events.jsonl").write_text("".join(lines) + more)


def step(k):
    return {"event": "step", "step": k, "loss": 1 / (k + 1), "accuracy": 0.5}


def measured(k, share, split="validation"):
    return {"event": "measured", "step": k, "split": split, "accuracy": share, "loss": 1.0}


@pytest.mark.parametrize("tail", [200, 2**16])
def test_it_is_the_newest_of_the_test_else_of_the_validation(store, monkeypatch, tail):
    monkeypatch.setattr(figures, "_TAIL", tail)
    run = store.create(tiny())
    assert last_measured(run) is None
    write(run, *(step(k) for k in range(7)))
    assert last_measured(run) is None
    write(run, measured(3, 0.25), *(step(k) for k in range(29)), measured(5, 0.75))
    assert last_measured(run)["accuracy"] == 0.75
    write(run, measured(3, 0.25), *(step(k) for k in range(29)))
    found = last_measured(run)
    assert (found["accuracy"], found["split"]) == (0.25, "validation")
    write(run, measured(3, 0.25), measured(7, 0.5, "test"), measured(5, 0.75))
    found = last_measured(run)
    assert (found["accuracy"], found["split"]) == (0.5, "test")


def test_what_was_taken_back_or_is_no_file_does_not_count(store):
    run = store.create(tiny())
    write(run, measured(3, 0.25), measured(7, 0.5, "test"), {"event": "resumed", "step": 3})
    found = last_measured(run)
    assert (found["accuracy"], found["split"]) == (0.25, "validation")
    run = store.create(tiny())
    (run.folder / "events.jsonl").mkdir()
    assert last_measured(run) is None


@pytest.mark.parametrize("more", ["{torn", '{"event": "measured", "split": 3}\n', "measured\n"])
def test_what_is_garbled_is_left_out(store, more):
    run = store.create(tiny())
    write(run, measured(3, 0.25), more=more)
    assert last_measured(run)["accuracy"] == 0.25
