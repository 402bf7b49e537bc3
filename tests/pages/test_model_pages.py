"""Build and Parameters through the frame, with drafts, runs and models to scale."""

import time

import pytest

from pages.ui import runs_access
from tests.pages.looking import said
from tfm_core.architectures import ARCHITECTURES
from tfm_core.presets import PRESETS
from tfm_core.runs.store import RunStore

PATHS = ["model/build.py", "model/parameters.py"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", ["gpt2-xl", "vit-h", "bert-base", "transformer-big"])
def test_models_to_scale_show_their_count(open_page, path, name):
    app = open_page(path)
    app.selectbox(key="model-choice").set_value(name).run()
    assert not app.exception
    known = ARCHITECTURES[name]
    if known.n_parameters:
        assert f"{known.n_parameters:,}" in said(app)
        assert "the published count" in said(app)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_looked_at(open_page, path, name):
    app = open_page(path)
    app.session_state["draft"] = PRESETS[name].experiment.model_dump()
    app.run()
    assert not app.exception


@pytest.mark.parametrize("path", PATHS)
def test_a_draft_that_does_not_fit_is_said_and_the_last_one_shown(open_page, path):
    app = open_page(path)
    app.run()
    values = {**app.session_state["draft"]}
    values["model"] = {**values["model"], "n_heads": 7}
    app.session_state["draft"] = values
    app.run()
    assert not app.exception
    assert "7 does not divide d" in said(app)
    assert "the last configuration that fitted is shown" in said(app)


def test_two_models_are_compared_in_words(open_page):
    app = open_page("model/parameters.py")
    app.selectbox(key="model-choice").set_value("gpt2-small").run()
    app.selectbox(key="model-compare").set_value("gpt2-medium").run()
    assert not app.exception
    assert "Layers: 24 instead of 12." in said(app)


def test_the_table_can_be_searched(open_page):
    app = open_page("model/parameters.py")
    app.selectbox(key="model-choice").set_value("gpt2-small").run()
    app.text_input(key="parameters-search").set_value("feed_forward.up").run()
    assert list(app.dataframe[0].value["formula"]) == ["12 x (768 x 3072 + 3072)"]
    app.text_input(key="parameters-search").set_value("nothing like it").run()
    assert "No module has “nothing like it” in its name." in said(app)


def test_a_recorded_run_shows_its_weights_before_and_after(open_page, store, monkeypatch, tmp_path):
    monkeypatch.setattr(runs_access.store(), "recorded", RunStore(tmp_path / "other").recorded)
    app = open_page("model/parameters.py", run="recorded-digits")
    assert not app.exception
    assert app.selectbox(key="model-choice").value == "run"
    assert app.selectbox(key="parameters-weights").options
    assert "The standard deviation went from" in said(app)


@pytest.mark.parametrize("path", PATHS)
def test_the_page_answers_within_300_ms_at_vit_b(open_page, path):
    app = open_page(path)
    app.selectbox(key="model-choice").set_value("vit-b").run()
    times = []
    for name in ("vit-s", "vit-b", "vit-ti", "vit-b"):
        app.selectbox(key="model-choice").set_value(name)
        begin = time.perf_counter()
        app.run()
        times.append(time.perf_counter() - begin)
    assert min(times) < 0.3
