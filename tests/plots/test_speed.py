"""Figures of speed and of one step hold the numbers they were given."""

import numpy as np
import pytest

from tests.trace.test_learning import chosen
from tfm_core.inspect.speed.report import BenchmarkCase
from tfm_core.plots.training import speed, training_step
from tfm_core.trace.backward import fold, graph_of, groups_of
from tfm_core.trace.learning import start


def test_bars_of_time_and_bytes_are_exact_and_losses_that_are_no_number_gaps():
    seconds = {"plain": [0.002, 0.001, 0.004], "fast": [0.001, 0.001, 0.002]}
    n_bytes = {"plain": 3 * 2**20, "fast": 1}
    case = BenchmarkCase("work", dict.fromkeys(seconds), n_bytes=n_bytes, seconds=seconds)
    figure = speed.times(case.times(), "CPU", (0, 1))
    (bars,) = figure.data
    assert bars.x == pytest.approx([2.0, 1.0])
    assert bars.error_x.array == pytest.approx([2.0, 1.0])
    assert bars.error_x.arrayminus == pytest.approx([1.0, 0.0])
    assert "CPU" in figure.layout.xaxis.title.text
    assert "2.00x" in figure.layout.annotations[1].text
    (bars,) = speed.counted(case.times(), (0, 1)).data
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
