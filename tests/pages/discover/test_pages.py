"""The pages of findings: cold, with a guess, and with runs that hold little."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.discover.recipe import BEGINNING
from tests.pages.experiments.test_page import guessed, labels
from tests.pages.looking import figure_of, said
from tests.pages.made_runs import made_run
from tests.pages.opening import opened_at
from tfm_core.inspect.discover.phenomenon import INDUCTION, PHENOMENA
from tfm_core.recorded.build import FINDINGS

ALL = pytest.mark.parametrize("name", PHENOMENA)


def page(name: str, **query: str) -> AppTest:
    return opened_at(f"discover/{name}.py", **query)


@ALL
def test_cold_it_asks_first_shows_data_and_offers_to_train(store, name):
    app, one = page(name), PHENOMENA[name]
    words = said(app)
    assert one.question.text in words
    assert one.question.because not in words
    assert "For example" in words
    assert any(label.startswith(f"Train {len(one.arms)} runs") for label in labels(app))

    words = said(guessed(app, one.question.answer))
    assert one.question.because in words
    assert one.address in words
    assert one.differs in words


@ALL
def test_a_run_that_has_just_begun_is_no_error(store, name):
    one = PHENOMENA[name]
    made_run(store, experiment=one.experiment(one.arms[0]), state="running")
    app = guessed(page(name))
    assert any(label.startswith("Train ") for label in labels(app))


@pytest.mark.core(2)
@pytest.mark.parametrize("name", FINDINGS)
def test_who_trained_nothing_sees_the_recorded_runs_and_may_train_them(store, recorded, name):
    one = PHENOMENA[name]
    app = page(name)
    beginning = figure_of(app, "discover-beginning")
    assert 0 < max(max(line.x) for line in beginning.data) <= BEGINNING * one.base.training.steps
    guessed(app, one.question.answer)
    curves = figure_of(app, "discover-curves")
    assert sum(line.showlegend is not False for line in curves.data) >= len(one.arms)
    (look_inside,) = [
        link.proto for link in app.get("page_link") if link.proto.label == "Look inside"
    ]
    assert look_inside.page == "attention"
    assert f"run=recorded-{name}-{one.arms[0].name}" in look_inside.query_string
    words = said(app)
    assert "Nothing is trained yet" not in words
    assert words.count("Recorded") >= len(one.arms)
    assert any(label.startswith(f"Train {len(one.arms)} runs") for label in labels(app))


def test_a_run_that_was_stopped_is_named_and_the_rest_may_be_trained(store):
    made_run(store, experiment=INDUCTION.experiment(INDUCTION.arms[0]), state="stopped")
    app = guessed(page("induction"))
    assert "Stopped" in said(app)
    assert any(label.startswith(f"Train {len(INDUCTION.arms)} runs") for label in labels(app))


@pytest.mark.parametrize("events", ["{\n", ""])
def test_damaged_events_of_a_run_are_no_error_before_and_after_the_guess(store, events):
    run = made_run(store, experiment=INDUCTION.experiment(INDUCTION.arms[0]))
    (run.folder / "events.jsonl").write_text(events, encoding="utf-8")
    app = page("induction")
    app = guessed(app)


def test_more_seeds_and_a_line_in_context_are_trained_from_the_page(store):
    app = guessed(page("chains"))
    app.button(key="chains-train-line").click().run()
    (run,) = store.list()
    assert run.experiment.task.name == "lines"
    app = guessed(page("induction"))
    app.button(key="experiment-seeds").click().run()
    assert len(store.list()) > len(INDUCTION.arms)


def test_both_induction_heads_are_named_first_the_one_that_matters_more(store, recorded):
    """Without layer 2, head 2 of the recorded run 84.0 % are right, without head 1 95.7 %."""
    app = guessed(page("induction"))
    words = said(app)
    assert "Induction heads: layer 2, head 2; layer 2, head 1." in words
    assert "examples: 1)" in words


def test_a_sink_is_named_without_the_share_of_three_examples(store, recorded):
    """The table says the share of 200 texts, 70.5 %; on the three kept ones it is 77.1 %."""
    words = said(guessed(page("sinks")))
    assert "layer 1, head 1. The rule" in words
    assert "examples: 3)" in words
    assert "77.1" not in words
