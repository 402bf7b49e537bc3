"""Before the Transformer, and a recurrent run on the pages that show runs."""

import numpy as np
import pytest

from pages.app.runs import run_time
from tests.inspect.constructed import constructed_run
from tests.pages.looking import figure_of, revealed, said, sent
from tfm_core.inspect.speed.report import LENGTHS
from tfm_core.studies.experiments import race_of_attention

PAGE = "learn/before.py"


def test_one_press_queues_three_runs_that_differ_in_their_model_alone(busy_queue, store, open_page):
    app = open_page(PAGE)
    app.slider(key="before-steps").set_value(300)
    app.selectbox(key="before-task").set_value("reverse")
    app.button(key="before-start").click().run()
    queued = [run for run in store.list() if run.status.state == "queued"]
    expected = race_of_attention("reverse", steps=300).experiments
    assert {repr(run.experiment) for run in queued} == {repr(e) for e in expected.values()}
    assert len(queued) == 3
    assert "3 runs are waiting" in said(app)
    assert "Maps appear after the first step" in said(app)


def test_figures_and_maps_of_a_contest_stand_side_by_side(store, open_page):
    racing = race_of_attention("numbers", steps=1000).experiments
    for racer in racing.values():
        constructed_run(store, racer)
    app = open_page(PAGE, task="numbers", steps=1000)
    for name in racing:  # a row is the token that is written
        assert figure_of(app, f"before-map-{name}").layout.yaxis.ticktext[0] != "<bos>"
    table = app.table[0].value
    assert list(table.columns) == ["RNN, additive", "Transformer, 1 head", "Transformer, 4 heads"]
    counts = [int(text.replace(",", "")) for text in table.loc["Parameters"]]
    assert counts[0] < counts[1] == counts[2]
    assert said(app).count("no true alignment") == 3
    assert len(sent(app, "live_figure", "before-map")) == 3
    words = figure_of(app, "before-map-additive").layout.xaxis.ticktext
    app.selectbox(key="before-sentence-numbers").set_value(1).run()
    assert figure_of(app, "before-map-additive").layout.xaxis.ticktext != words


def test_a_linear_score_is_drawn_with_equal_rows_and_can_be_trained(busy_queue, store, open_page):
    app = open_page(PAGE)
    for name, is_equal in (("linear", True), ("additive", False)):
        rows = np.asarray(figure_of(app, f"before-untrained-{name}").data[0].z, float)
        assert rows.sum(1) == pytest.approx(1, abs=1e-6)
        assert rows.std(1).min() > 0.01  # the source words get different weights
        assert bool(abs(rows - rows[0]).max() < 1e-6) is is_equal
    assert "differ by at most **0.0000**" in said(app)
    app.button(key="before-linear").click().run()
    models = [run.experiment.model for run in store.list() if run.status.state == "queued"]
    assert [model.attention for model in models if model.family == "recurrent"] == ["linear"]


def test_times_are_measured_on_a_press_and_the_ratio_is_said(open_page, monkeypatch):
    monkeypatch.setattr("tfm_core.inspect.speed.measure.MIN_SECONDS", 0.0)
    app = open_page(PAGE)
    assert "Recorded" in said(app)
    assert len(sent(app, "live_figure", "before-times")) == 1
    app.button(key="before-measure").click().run()
    run_time.wait()
    app.run()
    assert f"From {LENGTHS[0]} to" not in said(app)  # it is asked first
    words = said(revealed(app))
    assert "Recorded" not in words
    assert f"From {LENGTHS[0]} to {LENGTHS[-1]} tokens" in words
    assert len(sent(app, "live_figure", "before-times")) == 1
    times, ratios = (figure_of(app, f"before-{name}") for name in ("times", "ratios"))
    assert all(len(line.x) == len(LENGTHS) for line in times.data)
    assert all(ratio > 0 for ratio in ratios.data[0].y)
