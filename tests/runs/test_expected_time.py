"""The time that is said before a training: a range, taught by what finished on this machine."""

import dataclasses
from itertools import pairwise

import pytest

from tests.facts.test_training_time import changed
from tfm_core.facts.training_time import seconds
from tfm_core.presets import PRESETS
from tfm_core.runs.expected_time import Finished, expected, finished
from tfm_core.runs.process import this_host
from tfm_core.runs.status import write_status

TRANSLATE = PRESETS["translate"].experiment
CAPTIONS = PRESETS["captions"].experiment


def lesson(experiment=TRANSLATE, ratio=3.0, created="2026", device="cpu", threads=1):
    return Finished(experiment, device, threads, created, ratio)


def contains(found, experiment, ratio):
    return found.low < ratio * seconds(experiment) < found.high


def ended(store, preset="translate", *, took=39.0, step=None, **status):
    run = store.create(PRESETS[preset].experiment, preset=preset, state="finished")
    step = step or run.experiment.training.steps
    values = {"seconds": took, "step": step, "host": this_host(), **status}
    write_status(run.folder, dataclasses.replace(run.status, **values))
    return run


def test_before_anything_finished_the_speed_of_the_processor_stands_in():
    found = expected(TRANSLATE, [], slowness=2.0)
    assert contains(found, TRANSLATE, 2.0)
    assert not found.learned


def test_a_finished_run_teaches(store):
    one = finished(ended(store, took=39.0))
    assert one.ratio == pytest.approx(39 / PRESETS["translate"].seconds)
    found = expected(TRANSLATE, [one] * 3, slowness=0.5)
    assert found.low < 39 < found.high < 50
    assert found.learned


def test_a_run_that_ended_early_counts_by_the_steps_that_it_did(store):
    half = finished(ended(store, took=20.0, step=TRANSLATE.training.steps // 2))
    assert half.ratio == pytest.approx(40 / PRESETS["translate"].seconds, rel=0.05)


@pytest.mark.parametrize(
    "status",
    [{"state": "stopped"}, {"state": "failed"}, {"host": "elsewhere"}, {"seconds": 0.2}],
)
def test_what_did_not_finish_here_teaches_nothing(store, status):
    assert finished(ended(store, **status)) is None


def test_what_others_trained_or_went_on_with_teaches_nothing(store):
    for meta in ({"recorded": True}, {"parent": "a" * 17}):
        run = ended(store)
        if "recorded" in meta:
            run._recorded = True
        else:
            run.write_meta(dataclasses.replace(run.meta, **meta))
        assert finished(run) is None


def test_deeper_is_never_said_to_be_faster_whatever_was_learned_meanwhile():
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
        assert all(a.low < b.low and a.high < b.high for a, b in pairwise(found))


def test_one_busy_hour_does_not_change_the_answer_many_times_over():
    quiet = [lesson(ratio=2.0, created=f"2026-{n}") for n in range(4)]
    before = expected(TRANSLATE, quiet, slowness=2.0)
    after = expected(TRANSLATE, [*quiet, lesson(ratio=20.0, created="2027")], slowness=2.0)
    assert after.high == pytest.approx(before.high)
    alone = expected(TRANSLATE, [lesson(ratio=20.0)], slowness=2.0)
    assert alone.low < 7 * seconds(TRANSLATE)  # one run alone does not outvote the processor


def test_the_most_like_runs_are_asked_and_other_tasks_where_there_are_none():
    runs = [lesson(ratio=3.0), lesson(CAPTIONS, ratio=5.0)]
    assert contains(expected(TRANSLATE, runs * 3, slowness=1.0), TRANSLATE, 3.0)
    assert contains(expected(CAPTIONS, runs * 3, slowness=1.0), CAPTIONS, 5.0)
    other = PRESETS["addition"].experiment
    assert contains(expected(other, runs[:1] * 3, slowness=9.0), other, 3.0)


def test_each_device_and_number_of_threads_is_learned_for_itself():
    there = [lesson(ratio=0.1, device="cuda:0")] * 3
    assert expected(TRANSLATE, [], slowness=2.0, device="cuda:0") is None
    assert contains(expected(TRANSLATE, there, slowness=2.0, device="cuda:0"), TRANSLATE, 0.1)
    assert contains(expected(TRANSLATE, there, slowness=2.0), TRANSLATE, 2.0)
    measured = expected(TRANSLATE, [], slowness=2.0, device="cuda:0", measured=5.0)
    assert measured.low < 5.0 < measured.high
    mixed = [lesson(ratio=4.0)] * 3 + [lesson(ratio=2.5, threads=2)] * 3
    assert contains(expected(TRANSLATE, mixed, slowness=1.0, threads=2), TRANSLATE, 2.5)
