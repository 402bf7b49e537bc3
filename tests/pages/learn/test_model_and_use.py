"""The articles on the whole model and on its use, whose figures are of the run in sight."""

import re

import pytest

from pages.app import show
from pages.app.navigation.page_table import PAGES
from pages.i18n import languages, speaking
from tests.pages.looking import revealed, said
from tests.pages.opening import opened_at
from tfm_core.inspect.attention.trained import steps_of
from tfm_core.lessons import catalogue

MODEL, USE = (PAGES[name].file for name in ("model", "use"))


def shares(app):
    return [float(one.value.rstrip("%")) for one in app.metric]


def linked(app):
    """Return where the links of the figures lead."""
    ends = [one.proto.page for one in app.get("page_link")]
    return [one for one in ends if PAGES.get(one) and PAGES[one].place == "look-inside"]


def test_a_part_of_the_model_opens_with_its_equation_and_code(recorded):
    app = opened_at(MODEL, run="recorded-korean")
    assert "Multi-head attention" in said(app)
    assert "class MultiHeadAttention" in app.code[0].value
    app.selectbox(key="whole-block-list").set_value("decoder.layers.0.feed_forward").run()
    assert "Feed-forward" in said(app)
    assert "class MultiHeadAttention" not in app.code[0].value
    assert {"walk", "build"} <= {*linked(app)}


@pytest.mark.parametrize(("run", "most"), [("korean", "33%"), ("digits", "40%")])
def test_where_the_parameters_are_is_asked_before_it_is_drawn(recorded, run, most):
    app = opened_at(MODEL, run=f"recorded-{run}")
    assert "Largest part" not in said(app)
    assert "parameters" not in linked(app)
    assert f"Largest part: self-attention, {most}" in said(revealed(app))
    assert "parameters" in linked(app)


def test_a_part_is_missed_once_it_is_off_and_which_one_is_asked_first(recorded):
    app = opened_at(USE, run="recorded-korean")
    n = len(app.metric)
    revealed(app)
    assert len(app.metric) == n + 2
    whole, without = shares(app)[:2]
    assert whole == 100
    assert without < 5  # the last attention to the source
    app.selectbox(key="use-part-recorded-korean").set_value("decoder.3.cross.1").run()
    assert 90 < shares(app)[1] < 100  # one head of it


def test_a_map_can_go_and_every_answer_stays(recorded):
    app = opened_at(USE, run="recorded-korean")
    own, alike, without = shares(app)
    assert own == 100
    assert without < alike < 90
    (heads,) = [one for one in app.selectbox if one.label == "Head"]
    heads.set_value(4).run()  # the first of decoder layer 2
    assert shares(app) == [100, 100, 100]


def test_kinds_of_tokens_are_counted_at_a_step_of_the_training(recorded):
    app = opened_at(USE, run="recorded-korean")
    steps = steps_of(recorded.get("recorded-korean"))
    (slider,) = app.select_slider
    assert f"step {slider.value:,}: the share of right tokens" in said(app)
    slider.set_value(steps[-1]).run()
    assert f"step {steps[-1]:,}: the share of right tokens" in said(app)


def test_where_the_run_does_not_fit_a_translator_stands_in_and_is_named(recorded, store):
    assert "English to Korean" in said(opened_at(USE, run="recorded-digits"))


def test_without_any_model_the_figures_say_so(store, monkeypatch):
    monkeypatch.setattr("pages.app.accounts.visitors.available_runs", list)
    for file in (MODEL, USE):
        app = opened_at(file)
        assert any("train one" in one.value for one in app.error)


def test_the_plan_names_lessons_and_pages_as_they_are_called(recorded):
    named = {"words-to-numbers", "aligning-head", "causal-mask"}
    lessons = catalogue.catalogue().lessons
    for code in languages():
        with speaking(code):
            emphasised = {*re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", show.words("plan").more)}
            titles = {lessons[name].words(code).title for name in named}
            pages = {show.words(name).title for name in ("by-hand", "knockouts", "class", "use")}
            assert titles | pages <= emphasised
    assert "0–5" in said(opened_at(PAGES["plan"].file))
