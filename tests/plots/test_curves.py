"""Learning curves: short, honest and legible; and those of a stage."""

from __future__ import annotations

import base64
import io
import math

import numpy as np
import pytest
from PIL import Image

from tfm_core.plots.examples.pictures import picture_cards
from tfm_core.plots.training.curves import (
    MeasuredCurves,
    Measurements,
    ReferenceLine,
    learning_curve,
)
from tfm_core.plots.training.stage import MAX_DRAWN, MAX_POINTS, curve_lines, smooth, thin
from tfm_core.runs.curves import Curves

N = 7919


def noisy(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    steps = np.arange(1, n + 1, dtype=np.float32)
    return steps, np.random.default_rng(11).normal(size=n).astype(np.float32)


def test_a_thinned_line_is_short_ascending_and_keeps_both_ends() -> None:
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


@pytest.mark.parametrize("is_log", [False, True])
def test_a_thinned_line_loses_no_spike(is_log) -> None:
    steps, values = noisy()
    values[[5003, 1009]] = 31, -29
    kept = thin(steps, values, is_log=is_log)
    assert {5003, 1009} <= set(kept.tolist())


def test_a_log_axis_keeps_the_early_steps() -> None:
    steps, values = noisy()
    first = lambda is_log: (thin(steps, values, is_log=is_log) < 50).sum()  # noqa: E731
    assert first(True) > 5 * first(False)


def test_nan_does_not_hide_what_is_known() -> None:
    steps, values = noisy()
    values[2000:] = np.nan
    kept = thin(steps, values)
    part = values[(steps > 100) & (steps < 140)]
    shown = values[kept[(steps[kept] > 100) & (steps[kept] < 140)]]
    assert shown.max() == part.max()
    assert shown.min() == part.min()


def test_smoothing_is_the_mean_of_the_last_values() -> None:
    for window in [1, 2, 7, 1000]:
        _steps, values = noisy(211)
        expected = [values[max(0, i - window + 1) : i + 1].mean() for i in range(211)]
        np.testing.assert_allclose(smooth(values, window), expected, atol=1e-5)


def test_smoothing_leaves_out_what_diverged() -> None:
    values = np.array([1, np.nan, 3, np.nan, np.nan], np.float32)
    np.testing.assert_array_equal(
        smooth(values, 2), np.array([1, 1, 3, 3, np.nan], dtype=np.float32)
    )


def curve(**options):
    steps, values = noisy()
    measured = Measurements("validation", steps[::1000], values[::1000])
    whole = Measurements("whole sequences", steps[::1000], values[::1000])
    star = Measurements("test", steps[-1:], values[-1:])
    return learning_curve(
        MeasuredCurves(Measurements("training", steps, values), [measured, whole], [star]),
        y_title="loss (nats)",
        total_steps=N,
        **options,
    )


def test_every_line_is_short_and_float32() -> None:
    for line in curve().data:
        assert len(line.x) <= MAX_DRAWN
        assert np.asarray(line.x).dtype == np.asarray(line.y).dtype == np.float32


def test_axes_say_what_they_are() -> None:
    assert curve().layout.xaxis.title.text == "step"
    assert curve().layout.yaxis.title.text == "loss (nats)"
    assert curve(is_log=True).layout.xaxis.title.text == "step (log)"
    assert curve(is_share=True).layout.yaxis.tickformat == ".0%"


def test_lines_differ_in_more_than_colour() -> None:
    figure = curve()
    looks = {
        (line.mode, line.line.dash, line.marker.symbol)
        for line in figure.data
        if line.showlegend is None
    }
    assert len(looks) == len([line for line in figure.data if line.showlegend is None]) == 4


def test_marks_stand_at_their_value_with_their_words() -> None:
    figure = curve(marks=[ReferenceLine(2.3, "guessing: 2.30")])
    (shape,), (words,) = figure.layout.shapes, figure.layout.annotations
    assert shape.y0 == shape.y1 == 2.3
    assert words.text == "guessing: 2.30"


def test_the_words_of_a_floor_stand_below_it_where_no_curve_goes() -> None:
    figure = curve(
        marks=[
            ReferenceLine(2.3, "guessing"),
            ReferenceLine(1.6, "lowest possible", is_lower_bound=True),
        ]
    )
    above, below = figure.layout.annotations
    assert (above.yanchor, below.yanchor) == ("bottom", "top")


def test_step_zero_has_no_place_on_a_logarithmic_axis() -> None:
    start = Measurements("validation", np.array([0, 13]), np.array([2.0, 1.0]))
    measured = MeasuredCurves(Measurements("training", *noisy(17)), [start])
    figure = learning_curve(measured, y_title="loss", is_log=True)
    assert all(min(line.x) >= 1 for line in figure.data)


def test_a_run_without_any_step_makes_an_empty_figure() -> None:
    nothing = Measurements("training", np.empty(0), np.empty(0))
    figure = learning_curve(MeasuredCurves(nothing), y_title="loss")
    assert all(len(line.x) == 0 for line in figure.data)


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_come_out_pixel_by_pixel(channels) -> None:
    image = np.random.default_rng(13).integers(0, 256, (channels, 5, 7)).astype(np.uint8)
    html = picture_cards(image[None], [0], np.array([[0.75, 0.25]]), ["cat", "<dog>"])
    data = base64.b64decode(html.split("base64,")[1].split('"')[0])
    pixels = np.asarray(Image.open(io.BytesIO(data))).reshape(5, 7, channels)
    np.testing.assert_array_equal(np.moveaxis(pixels, -1, 0), image)
    assert "&lt;dog&gt;" in html


def test_a_wrong_picture_says_what_it_truly_is() -> None:
    image = np.zeros((1, 1, 5, 5), np.uint8)
    html = picture_cards(image, [1], np.array([[0.75, 0.25]]), ["cat", "dog"])
    assert "✗ cat, truly dog" in html


def test_the_best_validation_is_ringed():
    best = Measurements("best: step 20", np.array([20.0]), np.array([0.3]))
    figure = learning_curve(
        MeasuredCurves(
            Measurements("training", np.arange(1.0, 31), np.linspace(2, 0.1, 30)),
            [Measurements("validation", np.array([10.0, 20, 30]), np.array([0.5, 0.3, 0.4]))],
            best=best,
        ),
        y_title="loss",
    )
    ring = figure.data[-1]
    assert (ring.name, ring.x[0], ring.y[0]) == ("best: step 20", 20, np.float32(0.3))
    assert ring.marker.symbol == "circle-open"


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


def test_long_curves_are_short_and_lose_no_spike() -> None:
    lines = curve_lines(curves(5000), has_wholes=True)
    batch = next(line for line in lines if (line.quantity, line.role) == ("loss", "batch"))
    assert len(batch.steps) <= 2 * MAX_POINTS
    assert batch.steps[0] == 1
    assert batch.steps[-1] == 5000
    assert max(value for value in batch.values if value is not None) > 7
    assert list(batch.steps) == sorted(set(batch.steps))


def test_what_was_never_measured_makes_no_line() -> None:
    roles = {(line.quantity, line.role) for line in curve_lines(curves(50), has_wholes=True)}
    assert ("loss", "validation") in roles
    assert not {("accuracy", "validation"), ("accuracy", "whole"), ("loss", "test")} & roles


def test_an_unknown_value_is_none_and_the_best_validation_stands_alone() -> None:
    made = curves(30)
    made.extend([{"event": "step", "step": 31, "loss": None}])
    lines = curve_lines(made, has_wholes=False, is_patient=True)
    batch = next(line for line in lines if (line.quantity, line.role) == ("loss", "batch"))
    assert batch.values[-1] is None
    best = next(line for line in lines if (line.quantity, line.role) == ("loss", "best"))
    assert (best.steps, best.values) == ((30,), (0.5,))
