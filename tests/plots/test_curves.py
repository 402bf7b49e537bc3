"""Figures of trainings: curves, comparisons, sweeps, speed."""

import base64
import io
import itertools
import math

import numpy as np
import pytest
from PIL import Image

from tests.sweeps.made import HEADS, RATES, a_plan
from tests.trace.test_learning import chosen
from tfm_core.inspect.speed.report import BenchmarkCase
from tfm_core.plots.chart import LOOKS
from tfm_core.plots.png import picture_url
from tfm_core.plots.training import sweeps as plots
from tfm_core.plots.training import training_step
from tfm_core.plots.training.comparison import (
    ALL_POINTS,
    MIN_POINTS,
    CurvePanel,
    RunLine,
    comparison,
    kept_bytes,
    most_points,
    slots,
    times,
)
from tfm_core.plots.training.curves import (
    MAX_DRAWN,
    MAX_POINTS,
    curve_lines,
    learning_curve,
    smooth,
    thin,
)
from tfm_core.runs.curves import Curves
from tfm_core.sweeps.store import Trial
from tfm_core.trace.backward import fold, graph_of, groups_of
from tfm_core.trace.learning import start

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
    lines = curve_lines(curves(5000), scores_sequences=True)
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
    roles = {
        (line["quantity"], line["role"]) for line in curve_lines(curves(50), scores_sequences=True)
    }
    assert ("loss", "validation") in roles
    assert not {("accuracy", "validation"), ("accuracy", "whole"), ("loss", "test")} & roles
    made = curves(30)
    made.extend([{"event": "step", "step": 31, "loss": None}])
    lines = curve_lines(made, scores_sequences=False, is_patient=True)
    batch = next(line for line in lines if is_of(line, "loss", "batch"))
    assert batch["values"][-1] is None
    best = next(line for line in lines if is_of(line, "loss", "best"))
    assert (best["steps"], best["values"]) == ([30], [0.5])


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_come_out_pixel_by_pixel(channels):
    image = np.random.default_rng(13).integers(0, 256, (channels, 5, 7)).astype(np.uint8)
    data = base64.b64decode(picture_url(image).split("base64,")[1])
    pixels = np.asarray(Image.open(io.BytesIO(data))).reshape(5, 7, channels)
    np.testing.assert_array_equal(np.moveaxis(pixels, -1, 0), image)


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


def line(slot: int, n: int = 1000) -> RunLine:
    x = np.arange(n, dtype=np.float64)
    return RunLine(f"run {slot}", slot, x, np.sin(x + slot))


@pytest.mark.quick
def test_looks_differ_and_what_is_hidden_keeps_its_place():
    assert len({(look["colour"], look["dash"]) for look in LOOKS}) == len(LOOKS) > 50
    for one, other in itertools.pairwise(LOOKS):
        assert one["colour"] != other["colour"]
        assert one["dash"] != other["dash"]
    first = slots("abc", {})
    assert first == {"a": 0, "b": 1, "c": 2}
    without = slots("bc", first)
    assert without == {"b": 1, "c": 2}
    assert slots("bcd", without) == {"b": 1, "c": 2, "d": 0}
    assert slots("xb", {"b": 7}) == {"x": 0, "b": 7}


@pytest.mark.quick
def test_measured_points_and_long_runs_keep_every_extreme():
    (raw, mean) = comparison(
        [CurvePanel("loss", [line(0, 90)], is_noisy=True)], "step", window=7
    ).data
    np.testing.assert_allclose(raw.y, line(0, 90).y, rtol=1e-6)
    assert raw.opacity < 0.5
    assert mean.line.width > raw.line.width
    assert np.std(mean.y) < np.std(raw.y)
    assert len(comparison([CurvePanel("loss", [line(0)], is_noisy=True)], "step").data) == 1
    panels = [CurvePanel("loss", [line(slot) for slot in range(50)], is_noisy=True)]
    most = most_points(panels, 10)
    assert MIN_POINTS <= most < 1000
    figure = comparison(panels, "step", window=10)
    assert sum(len(trace.x) for trace in figure.data) <= ALL_POINTS + 50
    raw = [trace for trace in figure.data if not trace.showlegend]
    assert len(raw) == len({trace.line.color for trace in raw}) == 8
    ends = np.flatnonzero(np.isnan(raw[0].x))
    first = raw[0].y[: ends[0]]
    assert (first.min(), first.max()) == (
        pytest.approx(line(0).y.min()),
        pytest.approx(line(0).y.max()),
    )


@pytest.mark.quick
def test_a_band_is_drawn_around_its_mean_and_behind_it_what_it_sums_up():
    x = np.arange(5.0)
    faint = [RunLine("a", 3, x, x, is_faint=True), RunLine("b", 3, x, x + 1, is_faint=True)]
    panel = CurvePanel("loss", [*faint, RunLine("mean", 3, x, x, x - 1, x + 1)])
    named = [trace.name for trace in comparison([panel], "step").data if trace.showlegend]
    assert named == ["mean"]
    assert len(comparison([panel], "step").data) == 4
    band = RunLine("<b>mean</b>", 3, x, x, x - 1, x + 1)
    high, low, mean = comparison([CurvePanel("loss", [band])], "step").data
    assert low.fill == "tonexty"
    assert (high.y > mean.y).all()
    assert (mean.name, mean.line.color) == ("&lt;b&gt;mean&lt;/b&gt;", LOOKS[3]["colour"])
    assert comparison([], "step").data == ()
    empty = RunLine("x", 0, np.array([]), np.array([]))
    assert comparison([CurvePanel("loss", [empty])], "step", is_log_x=True).data == ()
    x = np.arange(101.0)
    members = [RunLine(f"seed {n}", 0, x, np.exp(-x / (9 + n)), is_faint=True) for n in range(3)]
    smoothed = [smooth(one.y, 10) for one in members]
    mean = np.mean(smoothed, axis=0)
    panel = CurvePanel("loss", [*members, RunLine("mean", 0, x, mean, mean, mean)], is_noisy=True)
    thin_lines, *_, drawn = comparison([panel], "step", window=10).data
    ends = np.flatnonzero(np.isnan(thin_lines.x))
    parts = [
        np.interp(drawn.x, thin_lines.x[a:b], thin_lines.y[a:b])
        for a, b in zip([0, *ends + 1], [*ends, len(thin_lines.x)], strict=True)
    ]
    assert len(parts) == 3
    assert (np.min(parts, axis=0) <= drawn.y + 1e-6).all()
    assert (drawn.y <= np.max(parts, axis=0) + 1e-6).all()


@pytest.mark.quick
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_a_logarithmic_axis_leaves_out_0_and_thins_evenly(scale):
    one = line(0, 5000)
    drawn = RunLine(one.name, 0, one.x * scale, one.y)
    (trace,) = comparison([CurvePanel("loss", [drawn])], "epoch", is_log_x=True).data
    assert trace.x[0] == pytest.approx(scale)
    below = (trace.x < 100 * scale).sum()
    assert below > 20


def trial(number: int, rate: float, heads: int, value: float | None) -> Trial:
    return Trial(
        number,
        {RATES.path: rate, HEADS.path: heads},
        "complete" if value is not None else "diverged",
        f"run{number}",
        begun=True,
        value=value,
    )


TRIALS = [trial(n, 0.002 + 0.0005 * n, 1 + n % 2, 0.5 + 0.01 * n) for n in range(5)]


@pytest.fixture(scope="module")
def drawn():
    return plots.figures(a_plan(), [*TRIALS, trial(5, 0.04, 1, None)])


def test_trials_have_optunas_numbers(drawn):
    assert list(drawn["history"].data[0].x) == [0, 1, 2, 3, 4]
    assert len(drawn["slice"].data[0].x) == 5
    assert list(drawn["slice"].layout.xaxis2.categoryarray) == ["1", "2", "3", "4"]


def test_nothing_is_drawn_between_fewer_than_eight_trials():
    many = [trial(n, 0.002 + 0.0005 * n, 1 + n % 4, 0.5 + 0.01 * n) for n in range(8)]
    assert "contour" not in plots.figures(a_plan(), many[:7])
    assert "contour" in plots.figures(a_plan(), many)


def test_no_importance_rests_on_a_value_with_one_finished_trial(drawn):
    assert "importance" in drawn
    lonely = [*TRIALS[::2], trial(9, 0.004, 2, 0.2), trial(10, 0.006, 1, 0.3)]
    assert plots.thin_values(a_plan(), lonely) == [("n_heads", 2, 1)]
    found = plots.figures(a_plan(), lonely)
    assert "importance" not in found
    assert "slice" in found


def test_bars_of_time_and_bytes_are_exact_and_losses_that_are_no_number_gaps():
    seconds = {"plain": [0.002, 0.001, 0.004], "fast": [0.001, 0.001, 0.002]}
    n_bytes = {"plain": 3 * 2**20, "fast": 1}
    case = BenchmarkCase("work", dict.fromkeys(seconds), n_bytes=n_bytes, seconds=seconds)
    figure = times(case.times(), "CPU", (0, 1))
    (bars,) = figure.data
    assert bars.x == pytest.approx([2.0, 1.0])
    assert bars.error_x.array == pytest.approx([2.0, 1.0])
    assert bars.error_x.arrayminus == pytest.approx([1.0, 0.0])
    assert "CPU" in figure.layout.xaxis.title.text
    assert "2.00x" in figure.layout.annotations[1].text
    (bars,) = kept_bytes(case.times(), (0, 1)).data
    assert bars.x[0] == pytest.approx(3.0)
    assert bars.customdata[0].tolist() == [3_145_728]
    figure = training_step.rates([0.1, 1.0], [2.0, float("inf")], 3.0, 0.1)
    assert np.isnan(figure.data[0].y[1])


@pytest.mark.parametrize("is_opened", [False, True])
def test_the_graph_is_drawn_with_every_group_and_flow(is_opened):
    graph = graph_of(start(chosen("vit")))
    name = next(one for one in groups_of(graph) if one.endswith("layers.0")) if is_opened else ""
    folded = fold(graph, name)
    dot = training_step.graph(folded, "light")
    assert dot.count(" -> ") == len(folded[1])
    assert dot.count("fillcolor") == len(folded[0])
    assert dot.count("{") == dot.count("}")
