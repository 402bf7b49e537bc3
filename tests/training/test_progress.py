"""Snapshots are taken where the loss falls: bounded, and the same ones after a stop."""

import math
from itertools import pairwise

import pytest

from tests.training.test_loop import experiment
from tfm_core.choices.config.training import WEIGHT_SETS
from tfm_core.training import checkpoints
from tfm_core.training.checkpoint_facts import facts_of
from tfm_core.training.events import Measured, SnapshotDue, Step
from tfm_core.training.loop import build, train
from tfm_core.training.progress import Descent, is_state, snapshot_schedule, spaced_steps

pytestmark = pytest.mark.quick


def taken(losses, count, floor=0.0):
    """Return the steps of the snapshots, and of those with weights, where these are the losses."""
    schedule, descent = snapshot_schedule(len(losses), count), Descent(floor)
    steps, kept = [0], [0]
    for step, loss in enumerate(losses, 1):
        descent.update(loss)
        if schedule.is_due(step, descent):
            steps.append(step)
            if schedule.keeps_weights(step, descent):
                kept.append(step)
    return steps, kept


def falling(total, at, width):
    """Return losses that fall from 4 to 0 around step ``at``."""
    return [4 / (1 + math.exp((step - at) / width)) for step in range(total)]


@pytest.mark.parametrize(("at", "width"), [(80, 10), (300, 20), (2000, 200)])
def test_most_snapshots_lie_where_the_loss_falls(at, width):
    steps, _kept = taken(falling(3000, at, width), 36)
    near = [step for step in steps if abs(step - at) < 6 * width]
    assert len(near) >= 24
    assert steps[-1] == 3000


@pytest.mark.parametrize("losses", [[3.0] * 500, [3.0 + n % 7 for n in range(500)]])
def test_a_loss_that_does_not_fall_is_looked_at_now_and_then(losses):
    steps, kept = taken(losses, 36)
    assert 8 <= len(steps) <= 12
    assert kept == [0, 500]


@pytest.mark.parametrize("count", [2, 5, 8, 9, 12, 36, 256])
def test_there_are_never_more_than_were_asked_for(count):
    totals = (1, 7, 100, 3000)
    shapes = [falling(total, total / 2, total / 20) for total in totals]
    for losses in (*shapes, *([9.0, *[0.0] * (total - 1)] for total in totals)):
        total = len(losses)
        steps, kept = taken(losses, count)
        assert len(steps) <= count
        assert len(kept) <= WEIGHT_SETS
        assert set(kept) <= set(steps)
        assert {0, total} <= set(kept)


@pytest.mark.parametrize(("total", "count"), [(1, 2), (6, 4), (1000, 32), (100000, 24), (5, 256)])
def test_spaced_steps_are_log_spaced_from_first_to_last(total, count):
    steps = spaced_steps(total, count)
    assert steps[0] == 0
    assert steps[-1] == total
    assert len(steps) <= count
    gaps = [b - a for a, b in pairwise(steps)]
    assert gaps == sorted(gaps)


def falls():
    """Return an experiment that learns in its first steps."""
    training = {"steps": 60, "snapshots": 36, "validate_every": 50, "learning_rate": 0.02}
    return experiment(training=training)


def test_validations_and_descents_are_kept_and_checked():
    events = list(train(build(falls())))
    measured = [e.step for e in events if isinstance(e, Measured) and e.split == "validation"]
    assert {0, 50, 60} < set(measured)
    assert 4 <= len(measured) <= 3 + 7
    assert len([e for e in events if isinstance(e, SnapshotDue)]) > 12
    _steps, kept = taken(falling(1000, 100, 10), 36)
    assert len(kept) >= 12
    high = [2 + loss / 2 for loss in falling(1000, 100, 10)]
    assert len(taken(high, 36, floor=2.0)[0]) > 30
    assert len(taken(high, 36)[0]) < 20
    assert is_state({})
    assert is_state(Descent().state())
    for state in (3, {"way": 2}, {"first": "x"}, {"smoothed": None}, {"way": float("nan")}):
        assert not is_state(state)
    assert facts_of({"trainer": '{"step": 3, "seconds": 1, "scaler": {}}'}).descent == {}
    descent = Descent()
    descent.restore({})
    descent.update(2.0)
    assert (descent.first, descent.smoothed, descent.progress) == (2.0, 2.0, 0.0)


def test_a_resumed_training_takes_the_same_snapshots(tmp_path):
    whole = [e for e in train(build(falls())) if isinstance(e, SnapshotDue)]
    stopped, resumed = build(falls()), build(falls())
    before = []
    for event in train(stopped):
        before += [event] if isinstance(event, SnapshotDue) else []
        if isinstance(event, Step) and event.step == 20:
            break
    checkpoints.save(stopped, tmp_path)
    checkpoints.load(resumed, tmp_path)
    assert before + [e for e in train(resumed) if isinstance(e, SnapshotDue)] == whole
