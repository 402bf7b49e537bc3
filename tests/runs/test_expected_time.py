"""The time that is said before a training: from what finished on this machine, and its load."""

import dataclasses
import json
from itertools import pairwise

import pytest

from tests.facts.test_training_time import changed
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.facts.training_time import seconds
from tfm_core.runs.process.identity import this_host
from tfm_core.runs.record.expected_time import Finished, expected, finished
from tfm_core.runs.status import Status, write_status

TRANSLATE = PRESETS["translate"].experiment
CAPTIONS = PRESETS["captions"].experiment


def lesson(experiment=TRANSLATE, ratio=3.0, created="2026", device="cpu", threads=1):
    return Finished(experiment, device, threads, created, ratio)


def says(found, experiment, ratio):
    return found.seconds == pytest.approx(ratio * seconds(experiment))


def ended(store, experiment=TRANSLATE, *, took=39.0, step=None, **status):
    run = store.bring(experiment, Status("finished"), lambda _folder: None, name="ended")
    step = step or (experiment.training.steps if experiment.training else 5)
    values = {"seconds": took, "step": step, "host": this_host(), **status}
    write_status(run.folder, dataclasses.replace(run.status, **values))
    return run


def test_the_processor_and_the_most_like_runs_are_asked():
    found = expected(TRANSLATE, [], slowness=2.0)
    assert says(found, TRANSLATE, 2.0)
    assert not found.learned
    there = [lesson(ratio=0.1, device="cuda:0")] * 3
    found = expected(TRANSLATE, there, slowness=2.0, slowdown=5.0, device="cuda:0")
    assert says(found, TRANSLATE, 0.1)
    assert not found.is_busy
    runs = [lesson(ratio=3.0), lesson(CAPTIONS, ratio=5.0)]
    assert says(expected(TRANSLATE, runs * 3, slowness=1.0), TRANSLATE, 3.0)
    assert says(expected(CAPTIONS, runs * 3, slowness=1.0), CAPTIONS, 5.0)
    other = PRESETS["addition"].experiment
    assert says(expected(other, runs[:1] * 3, slowness=9.0), other, 3.0)
    there = [lesson(ratio=0.1, device="cuda:0")] * 3
    assert expected(TRANSLATE, [], slowness=2.0, device="cuda:0") is None
    assert says(expected(TRANSLATE, there, slowness=2.0, device="cuda:0"), TRANSLATE, 0.1)
    assert says(expected(TRANSLATE, there, slowness=2.0), TRANSLATE, 2.0)
    measured = expected(TRANSLATE, [], slowness=2.0, device="cuda:0", measured=5.0)
    assert measured.seconds == pytest.approx(5.0)
    mixed = [lesson(ratio=4.0)] * 3 + [lesson(ratio=2.5, threads=2)] * 3
    assert says(expected(TRANSLATE, mixed, slowness=1.0, threads=2), TRANSLATE, 2.5)


def test_finished_runs_teach_cpu_seconds_by_the_steps_that_they_did(store):
    one = finished(ended(store, took=39.0))
    assert one.ratio == pytest.approx(39 / PRESETS["translate"].seconds)
    found = expected(TRANSLATE, [one] * 3, slowness=0.5)
    assert found.seconds == pytest.approx(39)
    assert found.learned
    run = ended(store, took=100.0)
    steps = [{"event": "step", "step": n, "loss": 1.0, "cpu_seconds": 4.0 * n} for n in (1, 2, 3)]
    lines = [json.dumps(one) for one in (*steps, {"event": "finished", "step": 3})]
    (run.folder / "events.jsonl").write_text("".join(f"{line}\n" for line in lines))
    assert finished(run).ratio == pytest.approx(12 / PRESETS["translate"].seconds)
    half = finished(ended(store, took=20.0, step=TRANSLATE.training.steps // 2))
    assert half.ratio == pytest.approx(40 / PRESETS["translate"].seconds, rel=0.05)


def test_loops_of_others_and_what_went_on_elsewhere_teach_nothing(store):
    loop = Experiment.parse({"model": {"family": "foreign"}, "task": {"kind": "foreign"}})
    assert finished(ended(store, loop, took=39.0)) is None
    for meta in ({"recorded": True}, {"parent": "a" * 17}):
        run = ended(store)
        if "recorded" in meta:
            run._recorded = True
        else:
            run.write_meta(dataclasses.replace(run.meta, **meta))
        assert finished(run) is None


@pytest.mark.parametrize("slowdown", [1.0, 1.7, 5.0])
def test_other_work_makes_every_forecast_longer_by_as_much(slowdown):
    for runs in ([], [lesson(ratio=1.2)] * 3):
        quiet = expected(TRANSLATE, runs, slowness=1.3)
        busy = expected(TRANSLATE, runs, slowness=1.3, slowdown=slowdown)
        assert busy.seconds == pytest.approx(slowdown * quiet.seconds)
        assert busy.is_busy == (slowdown > 1.5)
        assert not quiet.is_busy
        assert busy.at(1.0).seconds == pytest.approx(quiet.seconds)


@pytest.mark.parametrize(
    "status",
    [{"state": "stopped"}, {"state": "failed"}, {"host": "elsewhere"}, {"seconds": 0.2}],
)
def test_what_did_not_finish_here_teaches_nothing(store, status):
    assert finished(ended(store, **status)) is None


def test_deeper_is_never_faster_and_one_busy_hour_changes_little():
    busy = [lesson(changed(TRANSLATE, "model", n_encoder_layers=2), ratio=9.0, created="2026-2")]
    quiet = [lesson(ratio=1.0, created="2026-1")]
    for runs in ([], busy, quiet, busy + quiet):
        found = [
            expected(
                changed(TRANSLATE, "model", n_encoder_layers=n, n_decoder_layers=n),
                runs,
                slowness=1.3,
            )
            for n in (2, 3, 4)
        ]
        assert all(a.seconds < b.seconds for a, b in pairwise(found))
    quiet = [lesson(ratio=2.0, created=f"2026-{n}") for n in range(4)]
    before = expected(TRANSLATE, quiet, slowness=2.0)
    after = expected(TRANSLATE, [*quiet, lesson(ratio=20.0, created="2027")], slowness=2.0)
    assert after.seconds == pytest.approx(before.seconds)
    alone = expected(TRANSLATE, [lesson(ratio=20.0)], slowness=2.0)
    assert alone.seconds < 15 * seconds(TRANSLATE)  # one run alone does not outvote the processor
