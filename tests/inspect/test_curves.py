"""Curves of runs along each axis, their best figures, and what may be compared."""

from typing import Any

import numpy as np
import pytest

from tests.inspect.test_differences import BASE, changed
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.curves import AXES, METRICS, caveats, figures, track
from tfm_core.runs.curves import Curves
from tfm_core.runs.store import RECORDED, RunStore

pytestmark = pytest.mark.quick


def recorded(steps: int = 5, *, has_times: bool = True, **started: Any) -> Curves:
    """Curves of a run of a few steps, two seconds each of which three are of the CPU."""
    records: list[dict[str, Any]] = [
        {"event": "started", "step": 0, "steps_per_epoch": 2, "n_parameters": 11, **started},
        {"event": "measured", "step": 0, "split": "validation", "loss": 5.0, "accuracy": 0.1},
    ]
    for step in range(1, steps + 1):
        times = {"seconds": 2.0 * step, "cpu_seconds": 3.0 * step} if has_times else {}
        records.append(
            {
                "event": "step",
                "step": step,
                "loss": 4.0 / step,
                "accuracy": step / 7,
                "examples_per_second": 32.0,
                **times,
            }
        )
    for step, loss in ((2, 0.5), (4, 0.7)):
        records.append(
            {
                "event": "measured",
                "step": step,
                "split": "validation",
                "loss": loss,
                "accuracy": loss,
            }
        )
    curves = Curves()
    curves.extend(records)
    return curves


def x_of(axis: Any, metric: str = "validation-loss", **facts: Any) -> list[float]:
    found = track(recorded(**facts), BASE, metric, axis)
    assert found is not None
    return list(found.x)


def test_steps_stand_on_each_axis_and_figures_say_the_last_and_the_best() -> None:
    size = BASE.training.batch_size
    assert x_of("step") == [0, 2, 4]
    assert x_of("epoch") == [0, 1, 2]
    assert x_of("examples") == [0, 2 * size, 4 * size]
    assert x_of("clock") == [0, 4, 8]
    assert x_of("cpu") == [0, 6, 12]
    assert x_of("cpu", "loss") == [3, 6, 9, 12, 15]
    curves = recorded(has_times=False)
    found = track(curves, BASE, "validation-loss", "clock")
    assert found is not None
    assert found.is_reckoned
    per_step = BASE.training.batch_size / 32.0
    np.testing.assert_allclose(found.x, [0, 2 * per_step, 4 * per_step])
    assert track(curves, BASE, "loss", "cpu") is None
    curves.extend([{"event": "finished", "step": 5, "seconds": 100.0}])
    whole = track(curves, BASE, "loss", "clock")
    assert whole is not None
    assert whole.x[-1] == pytest.approx(100)
    found = figures(recorded())
    expected = {"loss": 0.7, "best_loss": 0.5, "best_loss_step": 2, "best_accuracy": 0.7}
    expected |= {"best_accuracy_step": 4, "step": 5, "n_parameters": 11}
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert figures(Curves())["best_loss"] is None


def test_recorded_metrics_have_their_tracks_and_unlike_losses_are_said() -> None:
    run = RunStore(recorded=RECORDED).get("recorded-one-head")
    for metric in METRICS:
        for axis in AXES:
            found = track(run.curves(), run.experiment, metric, axis)
            if axis == "cpu":
                assert found is None
                continue
            assert found is not None
            assert len(found.x) == len(found.values)
            assert (len(found.x) > 1) == (metric != "balance")  # its model has no experts
            assert (np.diff(found.x) > 0).all()
    digits, other = PRESETS["vit-digits"].experiment, changed(task__size=2)
    assert "different tasks" in caveats([BASE, digits], ["loss"])[0]
    assert "“Clauses”" in caveats([BASE, other], ["validation-accuracy"])[0]
    assert caveats([BASE, digits], ["speed", "gradient"]) == ()
    assert caveats([BASE, changed(model__n_heads=1)], list(METRICS)) == ()
    assert caveats([BASE, changed(task__n_train=1000)], list(METRICS)) == ()
    digits = PRESETS["vit-digits"].experiment
    noisy = digits.replace(task=digits.task.replace(label_noise=0.2).model_dump())
    assert "Wrong labels" in caveats([digits, noisy], ["accuracy"])[0]
    assert caveats([digits, noisy], ["validation-accuracy", "validation-loss"]) == ()
    smooth = changed(training__label_smoothing=0.1)
    assert "Label smoothing" in caveats([BASE, smooth], ["loss"])[0]
    assert caveats([BASE, smooth], ["validation-loss"]) == ()
    assert "Dropout raises" in caveats([BASE, changed(model__dropout=0.2)], ["accuracy"])[0]
