"""The pages of findings: cold, with a guess, and with runs that hold little."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from pages.discover.recipe import BEGINNING
from tests.pages.experiments.test_page import guessed, labels, shown
from tests.pages.looking import figure_of
from tests.pages.made_runs import made_run
from tests.pages.opening import opened_at
from tfm_core.inspect.discover.phenomenon import INDUCTION, PHENOMENA
from tfm_core.recorded.build import FINDINGS
from tfm_core.runs.store import RECORDED, RunStore

ALL = pytest.mark.parametrize("name", PHENOMENA)


def page(name: str, **query: str) -> AppTest:
    return opened_at(f"discover/{name}.py", **query)


@ALL
def test_cold_it_asks_first_shows_data_and_offers_to_train(store: RunStore, name: str) -> None:
    app, one = page(name), PHENOMENA[name]
    said = shown(app)
    assert one.question.text in said
    assert one.question.because not in said
    assert "For example" in said
    assert any(label.startswith(f"Train {len(one.arms)} runs") for label in labels(app))


@ALL
def test_after_a_guess_it_says_what_to_expect_and_cites(store: RunStore, name: str) -> None:
    one = PHENOMENA[name]
    said = shown(guessed(page(name), one.question.answer))
    assert one.question.because in said
    assert one.address in said
    assert one.differs in said


@ALL
def test_a_run_that_has_just_begun_is_no_error(store: RunStore, name: str) -> None:
    one = PHENOMENA[name]
    made_run(store, experiment=one.experiment(one.arms[0]), state="running")
    app = guessed(page(name))
    assert not app.exception
    assert any(label.startswith("Train ") for label in labels(app))


@pytest.mark.core(2)
@pytest.mark.parametrize("name", FINDINGS)
def test_who_trained_nothing_sees_the_recorded_runs_and_may_train_them(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(store, "recorded", RECORDED)
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
    said = shown(app)
    assert "Nothing is trained yet" not in said
    assert said.count("Recorded") >= len(one.arms)
    assert any(label.startswith(f"Train {len(one.arms)} runs") for label in labels(app))


def test_more_seeds_stay_on_the_page(store: RunStore) -> None:
    app = guessed(page("induction"))
    app.button(key="experiment-seeds").click().run()
    assert not app.exception
    assert len(store.list()) > len(INDUCTION.arms)


def test_a_run_that_was_stopped_is_named_and_the_rest_may_be_trained(store: RunStore) -> None:
    made_run(store, experiment=INDUCTION.experiment(INDUCTION.arms[0]), state="stopped")
    app = guessed(page("induction"))
    assert not app.exception
    assert "Stopped" in shown(app)
    assert any(label.startswith(f"Train {len(INDUCTION.arms)} runs") for label in labels(app))


@pytest.mark.parametrize("events", ["{\n", ""])
def test_damaged_events_of_a_run_are_no_error_before_and_after_the_guess(
    store: RunStore, events: str
) -> None:
    run = made_run(store, experiment=INDUCTION.experiment(INDUCTION.arms[0]))
    (run.folder / "events.jsonl").write_text(events, encoding="utf-8")
    app = page("induction")
    assert not app.exception
    app = guessed(app)
    assert not app.exception


def test_a_line_in_context_is_offered_to_train(store: RunStore) -> None:
    app = guessed(page("chains"))
    app.button(key="chains-train-line").click().run()
    (run,) = store.list()
    assert run.experiment.task.name == "lines"
