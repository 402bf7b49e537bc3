"""Learning curves: short, honest and legible; and those of a stage."""

import base64
import io
import math

import numpy as np
import pytest
from PIL import Image

from tfm_core.plots.examples.pictures import picture_cards
from tfm_core.plots.training.curves import learning_curve
from tfm_core.plots.training.stage import MAX_DRAWN, MAX_POINTS, curve_lines, smooth, thin
from tfm_core.runs.curves import Curves

N = 7919


def noisy(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    steps = np.arange(1, n + 1, dtype=np.float32)
    return steps, np.random.default_rng(11).normal(size=n).astype(np.float32)


def test_thinned_and_smoothed_lines_keep_ends_spikes_and_the_early_steps():
    for is_log in [False, True]:
        for n in [0, 1, 2, 399, 400, 401, N]:
            steps, values = noisy(n)
            kept = thin(steps, values, is_log=is_log)
            assert len(kept) <= MAX_DRAWN
            assert (np.diff(kept) > 0).all()
            if n:
                assert (kept[0], kept[-1]) == (0, n - 1)
            if n <= MAX_DRAWN:
                assert len(kept) == n
    steps, values = noisy()
    values[2000:] = np.nan
    kept = thin(steps, values)
    part = values[(steps > 100) & (steps < 140)]
    shown = values[kept[(steps[kept] > 100) & (steps[kept] < 140)]]
    assert shown.max() == part.max()
    assert shown.min() == part.min()
    steps, values = noisy()
    first = lambda is_log: (thin(steps, values, is_log=is_log) < 50).sum()  # noqa: E731
    assert first(True) > 5 * first(False)
    for window in [1, 2, 7, 1000]:
        _steps, values = noisy(211)
        expected = [values[max(0, i - window + 1) : i + 1].mean() for i in range(211)]
        np.testing.assert_allclose(smooth(values, window), expected, atol=1e-5)
    values = np.array([1, np.nan, 3, np.nan, np.nan], np.float32)
    np.testing.assert_array_equal(
        smooth(values, 2), np.array([1, 1, 3, 3, np.nan], dtype=np.float32)
    )
    lines = curve_lines(curves(5000), has_wholes=True)
    batch = next(line for line in lines if is_of(line, "loss", "batch"))
    assert len(batch["steps"]) <= 2 * MAX_POINTS
    assert batch["steps"][0] == 1
    assert batch["steps"][-1] == 5000
    assert max(value for value in batch["values"] if value is not None) > 7
    assert list(batch["steps"]) == sorted(set(batch["steps"]))


@pytest.mark.parametrize("is_log", [False, True])
def test_a_thinned_line_loses_no_spike(is_log):
    steps, values = noisy()
    values[[5003, 1009]] = 31, -29
    kept = thin(steps, values, is_log=is_log)
    assert {5003, 1009} <= set(kept.tolist())


def test_figures_without_steps_or_values_stand_and_wrong_pictures_say_so():
    figure = learning_curve(curves(17), "loss", is_log=True)
    assert figure.data
    assert all(min(line.x) >= 1 for line in figure.data)
    assert not learning_curve(Curves(), "loss").data
    roles = {(line["quantity"], line["role"]) for line in curve_lines(curves(50), has_wholes=True)}
    assert ("loss", "validation") in roles
    assert not {("accuracy", "validation"), ("accuracy", "whole"), ("loss", "test")} & roles
    made = curves(30)
    made.extend([{"event": "step", "step": 31, "loss": None}])
    lines = curve_lines(made, has_wholes=False, is_patient=True)
    batch = next(line for line in lines if is_of(line, "loss", "batch"))
    assert batch["values"][-1] is None
    best = next(line for line in lines if is_of(line, "loss", "best"))
    assert (best["steps"], best["values"]) == ([30], [0.5])
    image = np.zeros((1, 1, 5, 5), np.uint8)
    html = picture_cards(image, [1], np.array([[0.75, 0.25]]), ["cat", "dog"])
    assert "✗ cat, truly dog" in html


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_come_out_pixel_by_pixel(channels):
    image = np.random.default_rng(13).integers(0, 256, (channels, 5, 7)).astype(np.uint8)
    html = picture_cards(image[None], [0], np.array([[0.75, 0.25]]), ["cat", "<dog>"])
    data = base64.b64decode(html.split("base64,")[1].split('"')[0])
    pixels = np.asarray(Image.open(io.BytesIO(data))).reshape(5, 7, channels)
    np.testing.assert_array_equal(np.moveaxis(pixels, -1, 0), image)
    assert "&lt;dog&gt;" in html


def is_of(line, quantity, role):
    return (line["quantity"], line["role"]) == (quantity, role)


def curves(n: int) -> Curves:
    made = Curves()
    records = [
        {"event": "step", "step": k, "loss": math.exp(-k / n) + (k == 1234) * 7, "accuracy": k / n}
        for k in range(1, n + 1)
    ]
    records += [
        {"event": "measured", "step": k, "split": "validation", "loss": 1.5 - k / n}
        for k in (0, n // 2, n)
    ]
    made.extend(sorted(records, key=lambda record: record["step"]))
    return made
