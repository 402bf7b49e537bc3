"""Before the Transformer, and a recurrent run on the pages that show runs."""

import pytest

from pages.ui.runs import run_time
from tests.inspect.attention.test_own_example import trained
from tests.inspect.constructed import constructed_run, small
from tests.pages.looking import figure_of, n_drawn, revealed, said
from tfm_core.inspect.attention import rnn_attention
from tfm_core.inspect.attention.rnn_attention import racers
from tfm_core.inspect.speed.step_times import LENGTHS
from tfm_core.presets import PRESETS
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES

PAGE = "before/page.py"
VIEWS = ("contest", "length", "history")


def viewed(app, view):
    app.button_group(key="before-view").set_value(view).run()
    assert not app.exception
    assert not app.error
    return app


def test_every_view_is_there_without_a_run(open_page):
    for view in VIEWS:
        assert "Before the Transformer" in [
            title.value for title in viewed(open_page(PAGE), view).title
        ]


def test_one_press_queues_three_runs_that_differ_in_their_model_alone(busy_queue, store, open_page):
    app = viewed(open_page(PAGE), "contest")
    app.slider(key="before-steps").set_value(300)
    app.selectbox(key="before-task").set_value("reverse")
    app.button(key="before-train").click().run()
    assert not app.exception
    queued = [run for run in store.list() if run.status.state == "queued"]
    expected = racers("reverse", steps=300)
    assert {repr(run.experiment) for run in queued} == {repr(e) for e in expected.values()}
    assert len(queued) == 3
    assert "3 runs are waiting" in said(app)
    assert "Maps appear after the first step" in said(app)


def test_a_server_with_limits_says_why_nothing_starts(store, open_page, monkeypatch, request):
    monkeypatch.setenv("TFM_MAX_STEPS", "100")
    request.getfixturevalue("busy_queue")
    app = viewed(open_page(PAGE), "contest")
    app.button(key="before-train").click().run()
    assert not app.exception
    assert "the limit here is 100" in " ".join(error.value for error in app.error)
    assert not [run for run in store.list() if run.status.state == "queued"]


def test_figures_and_maps_of_a_contest_stand_side_by_side(store, open_page):
    racing = racers("numbers", steps=1000)
    for racer in racing.values():
        constructed_run(store, racer)
    app = viewed(open_page(PAGE), "contest")
    for name in racing:  # a row is the token that is written
        assert figure_of(app, f"before-map-{name}").layout.yaxis.ticktext[0] != "<bos>"
    table = app.table[0].value
    assert list(table.columns) == ["RNN, additive", "Transformer, 1 head", "Transformer, 4 heads"]
    counts = [int(text.replace(",", "")) for text in table.loc["Parameters"]]
    assert counts[0] < counts[1] == counts[2]
    assert said(app).count("no true alignment") == 3
    assert n_drawn(app) == 3
    words = figure_of(app, "before-map-additive").layout.xaxis.ticktext
    app.selectbox(key="before-sentence-numbers").set_value(1).run()
    assert not app.exception
    assert figure_of(app, "before-map-additive").layout.xaxis.ticktext != words


def test_times_are_measured_on_a_press_and_the_ratio_is_said(open_page, monkeypatch):
    monkeypatch.setattr("tfm_core.inspect.speed.step_times.MIN_SECONDS", 0.0)
    app = viewed(open_page(PAGE), "length")
    assert "Recorded" in said(app)
    assert n_drawn(app) == 2
    app.button(key="before-measure").click().run()
    run_time.wait()
    app.run()
    assert not app.exception
    assert f"From {LENGTHS[0]} to" not in said(app)  # it is asked first
    words = said(revealed(app))
    assert "Recorded" not in words
    assert f"From {LENGTHS[0]} to {LENGTHS[-1]} tokens" in words
    assert n_drawn(app) == 2
    times, ratios = (figure_of(app, f"before-{name}") for name in ("times", "ratios"))
    assert all(len(line.x) == len(LENGTHS) for line in times.data)
    assert all(ratio > 0 for ratio in ratios.data[0].y)


def recurrent_run(store, score):
    experiment = PRESETS["translate-additive"].experiment
    model = {**experiment.model.model_dump(), "attention": score, "d_model": 12}
    experiment = experiment.replace(model=model)
    run = constructed_run(store, experiment, state="finished")
    _, trainer = trained(store.root / "elsewhere", small(experiment))
    from tfm_core.training import checkpoints

    checkpoints.save(trainer, run.folder / "checkpoints" / "last")
    return run


@pytest.mark.parametrize(
    ("path", "score"),
    [
        ("architecture/build.py", "dot"),
        ("architecture/parameters.py", "general"),
        ("masks/page.py", "concat"),
        ("train/page.py", "general"),
        ("walk/page.py", "additive"),
    ],
)
def test_pages_show_a_recurrent_run(open_page, store, path, score):
    app = open_page(path, run=recurrent_run(store, score).id)
    assert not app.exception


@pytest.mark.parametrize("score", ALIGNMENT_SCORES)
def test_the_arithmetic_of_a_cell_is_that_of_the_score(open_page, store, score):
    app = open_page("attention/page.py", run=recurrent_run(store, score).id, view="arithmetic")
    assert not app.exception
    assert not app.error
    words = said(app)
    is_tanh = score in {"additive", "concat"}
    assert ("tanh(query + key)" in words) == is_tanh
    assert "not scaled" in words


def test_models_of_the_contest_are_as_wide_as_each_other():
    assert {model.d_model for model in rnn_attention.models().values()} == {rnn_attention.WIDTH}
