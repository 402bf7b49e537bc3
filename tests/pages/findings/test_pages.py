"""The pages of findings: cold, with a guess, and with runs that hold little."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.learn.experiments.test_page import guessed, labels
from tests.pages.looking import said
from tests.pages.made_runs import made_run
from tests.pages.opening import opened_at
from tfm_core.recorded.build import FINDINGS
from tfm_core.studies.induction import INDUCTION
from tfm_core.studies.phenomena import PHENOMENA

ALL = pytest.mark.parametrize("name", PHENOMENA)


def page(name: str, **query: str) -> AppTest:
    return opened_at(f"findings/{name}.py", **query)


@ALL
def test_a_run_that_has_just_begun_is_no_error(store, name):
    one = PHENOMENA[name]
    made_run(store, experiment=one.experiment(one.arms[0]), state="running")
    app = guessed(page(name))
    assert any(label.startswith("Train ") for label in labels(app))


def test_a_run_that_was_stopped_is_named_and_the_rest_may_be_trained(store):
    made_run(store, experiment=INDUCTION.experiment(INDUCTION.arms[0]), state="stopped")
    app = guessed(page("induction"))
    assert "Stopped" in said(app)
    assert any(label.startswith(f"Train {len(INDUCTION.arms)} runs") for label in labels(app))


@pytest.mark.parametrize("name", FINDINGS)
def test_the_first_recorded_run_of_a_finding_is_looked_into(recorded, name):
    links = [link.proto for link in guessed(page(name)).get("page_link")]
    (look_inside,) = [link for link in links if link.label == "Look inside"]
    assert look_inside.page == "attention"
    run = f"run=recorded-{name}-{PHENOMENA[name].arms[0].name}"
    assert run in look_inside.query_string


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
