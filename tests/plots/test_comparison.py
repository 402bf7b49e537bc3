"""Many curves in one figure: looks that differ and stay, raw values in sight, points thinned."""

import itertools

import numpy as np
import pytest

from tfm_core.plots.training.comparison import (
    ALL_POINTS,
    MIN_POINTS,
    N_LOOKS,
    CurvePanel,
    RunLine,
    comparison,
    hide_after,
    most_points,
    slots,
    style_of,
)
from tfm_core.plots.training.stage import smooth

pytestmark = pytest.mark.quick


def line(slot: int, n: int = 1000) -> RunLine:
    x = np.arange(n, dtype=np.float64)
    return RunLine(f"run {slot}", slot, x, np.sin(x + slot))


def test_looks_differ_and_what_is_hidden_keeps_its_place():
    every = [style_of(slot) for slot in range(N_LOOKS)]
    assert N_LOOKS > 50
    assert len(set(every)) == N_LOOKS
    for one, other in itertools.pairwise(every):
        assert one.colour != other.colour
    for one, other in itertools.pairwise(every):
        assert one.dash != other.dash
    assert style_of(N_LOOKS) == style_of(0)
    first = slots("abc", {})
    assert first == {"a": 0, "b": 1, "c": 2}
    without = slots("bc", first)
    assert without == {"b": 1, "c": 2}
    assert slots("bcd", without) == {"b": 1, "c": 2, "d": 0}
    assert slots("xb", {"b": 7}) == {"x": 0, "b": 7}
    x = np.arange(100.0)
    spread = RunLine("two runs", 2, x, x, x - 1, x + 1)
    panels = [CurvePanel("loss", [line(0, 90), line(1, 90), spread], is_noisy=True)]
    figure = comparison(panels, "step", window=7)
    hide_after(figure, 10, 200)
    assert len(figure.data) > 3
    for trace in figure.data:
        assert np.nanmax(trace.x) == 10
        assert len(trace.x) == len(trace.y)
    assert tuple(figure.layout.xaxis.range) == (0, 200)
    (place,) = figure.layout.shapes
    assert (place.x0, place.x1) == (10, 200)


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
        pytest.approx(line(0).y.min()), pytest.approx(line(0).y.max())
    )  # fmt: skip


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
    assert (mean.name, mean.line.color) == ("&lt;b&gt;mean&lt;/b&gt;", style_of(3).colour)
    assert comparison([], "step").data == ()
    empty = RunLine("x", 0, np.array([]), np.array([]))
    assert len(comparison([CurvePanel("loss", [empty])], "step", is_log_x=True).data[0].x) == 0
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


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_a_logarithmic_axis_leaves_out_0_and_thins_evenly(scale):
    one = line(0, 5000)
    drawn = RunLine(one.name, 0, one.x * scale, one.y)
    (trace,) = comparison([CurvePanel("loss", [drawn])], "epoch", is_log_x=True).data
    assert trace.x[0] == pytest.approx(scale)
    below = (trace.x < 100 * scale).sum()
    assert below > 20
