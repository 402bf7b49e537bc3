"""What runs that ended tell: how they went, and how long the next one takes."""

import dataclasses
import json
from itertools import pairwise

import pytest

from tests.facts.test_compute import changed
from tests.runs.waiting import tiny
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.facts.compute import seconds
from tfm_core.runs.expected_time import Finished, expected, finished
from tfm_core.runs.process.identity import this_host
from tfm_core.runs.status import Status, write_status
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.training.progress import LOSS_DIVERGED, TrainingDiverged

pytestmark = pytest.mark.quick


GUESSING = 3.0


@pytest.fixture
def ended(store):
    """Return a finished run whose loss, at steps 1, 2, ... and in validation, was as given."""

    def make(*losses, validation=None, averaged=None, floor=0.0, state="finished"):
        run = store.create(tiny())
        events = [{"event": "started", "start_loss": GUESSING, "floor": floor, "chance": 0.05}]
        events += [{"event": "step", "step": n, "loss": x} for n, x in enumerate(losses, 1)]
        measured = {"event": "measured", "split": "validation", "step": len(losses)}
        for weights, loss in (("last", validation), ("average", averaged)):
            if loss is not None:
                events.append({**measured, "weights": weights, "loss": loss, "accuracy": 0.1})
        lines = "".join(json.dumps(event) + "\n" for event in events)
        (run.folder / "events.jsonl").write_text(lines)
        write_status(run.folder, Status(state, step=len(losses), total_steps=len(losses)))
        return run

    return make


def test_runs_are_judged_by_spikes_guessing_last_steps_and_floors(ended):
    assert ended(3.1, 1.0, 0.2, validation=0.3).outcome is None
    assert ended(3.1, 50.0, 1.0, validation=0.1).outcome is None
    assert ended(3.1, 1.0, 0.2, validation=4.5).outcome.kind == "overfits"
    assert ended(3.1, 1.0, 0.2, validation=0.3, averaged=4.5).outcome is None
    found = ended(3.1, 40.0, 88.25, validation=91.0).outcome
    assert (found.kind, found.repeats) == ("diverged", False)
    assert "the loss is 91.00" in found.sentence
    assert "guessing gives 3.00" in found.sentence
    found = ended(3.1, 1575.4, 40.0, 2.9, validation=2.81).outcome
    assert found.kind == "diverged"
    assert "at step 2: the loss is 2.81" in found.sentence
    found = ended(3.2, 3.1, 3.05, validation=2.95).outcome
    assert found.kind == "at-chance"
    assert "the loss is 2.95; guessing gives 3.00" in found.sentence
    assert ended(3.2, 3.1, 3.05).outcome.kind == "at-chance"
    assert ended(*[3.0] * 5, *[0.5] * 30).outcome is None
    assert ended(3.1, 2.8, validation=2.75).outcome.kind == "at-chance"
    assert ended(3.1, 2.8, validation=2.75, floor=2.7).outcome is None


@pytest.mark.parametrize("state", ["stopped", "queued"])
def test_only_an_ended_run_is_judged(ended, state):
    assert ended(3.1, 3.1, validation=3.1, state=state).outcome is None


@pytest.mark.parametrize(("device", "repeats"), [("cpu", True), ("cuda:0", False)])
def test_a_loss_that_is_no_number_comes_again_on_the_cpu(store, device, repeats):
    run = store.create(tiny())
    values = {"loss": float("nan"), "step": 15, "learning_rate": 10.0, "lower": 1.0}
    reason = TrainingDiverged(LOSS_DIVERGED, **values).sentence
    write_status(run.folder, Status("failed", reason=reason, device=device))
    found = run.outcome
    assert (found.kind, found.sentence, found.repeats) == ("diverged", reason, repeats)


def test_another_failure_speaks_for_itself_and_recorded_runs_have_learned(store):
    run = store.create(tiny())
    write_status(run.folder, Status("failed", reason="The disk is full."))
    assert run.outcome is None
    recorded = [RunStore(store.root).get(one.name) for one in RECORDED.glob("recorded-*")]
    assert recorded
    assert [run.id for run in recorded if run.outcome] == []


TRANSLATE = PRESETS["translate"].experiment

CAPTIONS = PRESETS["captions"].experiment


def lesson(experiment=TRANSLATE, ratio=3.0, created="2026", device="cpu", threads=1):
    return Finished(experiment, device, threads, created, ratio)


def says(found, experiment, ratio):
    return found.seconds == pytest.approx(ratio * seconds(experiment))


def finished_run(store, experiment=TRANSLATE, *, took=39.0, step=None, **status):
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
    one = finished(finished_run(store, took=39.0))
    assert one.ratio == pytest.approx(39 / PRESETS["translate"].seconds)
    found = expected(TRANSLATE, [one] * 3, slowness=0.5)
    assert found.seconds == pytest.approx(39)
    assert found.learned
    run = finished_run(store, took=100.0)
    steps = [{"event": "step", "step": n, "loss": 1.0, "cpu_seconds": 4.0 * n} for n in (1, 2, 3)]
    lines = [json.dumps(one) for one in (*steps, {"event": "finished", "step": 3})]
    (run.folder / "events.jsonl").write_text("".join(f"{line}\n" for line in lines))
    assert finished(run).ratio == pytest.approx(12 / PRESETS["translate"].seconds)
    half = finished(finished_run(store, took=20.0, step=TRANSLATE.training.steps // 2))
    assert half.ratio == pytest.approx(40 / PRESETS["translate"].seconds, rel=0.05)


def test_loops_of_others_and_what_went_on_elsewhere_teach_nothing(store):
    loop = Experiment.parse({"model": {"family": "foreign"}, "task": {"kind": "foreign"}})
    assert finished(finished_run(store, loop, took=39.0)) is None
    for meta in ({"recorded": True}, {"parent": "a" * 17}):
        run = finished_run(store)
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
    assert finished(finished_run(store, **status)) is None


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
