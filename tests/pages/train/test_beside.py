"""Beside a run: seeds of it, a twin that differs, and the comparison with others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.runs import run_time
from tests.pages.looking import unmarked
from tests.pages.made_runs import made_run
from tests.runs.waiting import tiny
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

Open = Callable[..., AppTest]
TRAIN = "train/page.py"


@pytest.fixture(autouse=True)
def _nothing_left_behind():
    """No thread works on a forecast once a test is over."""
    yield
    run_time.wait()


def waiting(store: RunStore) -> list[Run]:
    """Runs that wait, the first one begun first."""
    return [run for run in reversed(store.list()) if run.status.state == "queued"]


def twin(app: AppTest, run: Run, *paths: str) -> AppTest:
    """Open the dialog and choose settings to change."""
    app.button(key="run-twin").click().run()
    for path in paths:
        app.selectbox(key=f"twin-what-{run.id}").set_value(path).run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    kinds = ("caption", "markdown", "error", "info")
    return unmarked("\n".join(str(element.value) for kind in kinds for element in app.get(kind)))


def test_a_configuration_is_trained_with_five_seeds_by_one_press(
    store: RunStore, busy_queue: RunQueue, open_page: Open, compared: list[str]
) -> None:
    app = open_page(TRAIN, draft=tiny())
    assert app.button(key="start-seeds").label == "5 seeds"
    app.button(key="start-seeds").click().run()
    assert [run.experiment for run in waiting(store)] == [
        tiny().replace(seed=seed) for seed in range(5)
    ]
    assert compared == [run.id for run in waiting(store)]


def test_the_number_of_seeds_is_chosen_and_kept(
    store: RunStore, busy_queue: RunQueue, open_page: Open, compared: list[str]
) -> None:
    run = made_run(store, experiment=tiny())
    app = open_page(TRAIN, run=run.id)
    app.number_input(key="run-seeds-number").set_value(3).run()
    assert app.button(key="run-seeds").label == "3 seeds"
    app.button(key="run-seeds").click().run()
    assert [one.experiment.seed for one in waiting(store)] == [1, 2]
    assert compared == [run.id, *(one.id for one in waiting(store))]


def test_a_configuration_that_cannot_be_has_no_seeds(
    store: RunStore, busy_queue: RunQueue, open_page: Open
) -> None:
    app = open_page(TRAIN, draft=tiny())
    app.toggle(key="all-settings").set_value(True).run()
    app.number_input(key="setting:model.n_heads").set_value(3).run()
    assert app.button(key="start-seeds").disabled


def test_a_twin_differs_in_what_was_changed_and_is_compared(
    store: RunStore, busy_queue: RunQueue, open_page: Open, compared: list[str]
) -> None:
    run = made_run(store, name="Mine", experiment=tiny())
    store.label(run.id, group="Heads")
    app = twin(open_page(TRAIN, run=run.id), run, "model.n_heads")
    start = f"twin-start-{run.id}"
    assert app.button(key=start).disabled
    assert "Nothing differs yet" in said(app)
    app.number_input(key=f"twin-{run.id}-model.n_heads").set_value(4).run()
    assert "Train a copy with **4 heads**" in said(app)
    app.button(key=start).click().run()
    (made,) = waiting(store)
    model = {**tiny().model.model_dump(), "n_heads": 4}
    assert made.experiment == tiny().replace(model=model)
    assert (made.meta.name, made.labels.group) == ("Mine", "Heads")
    assert compared == [run.id, made.id]
    assert store.get(run.id).experiment == tiny()


def test_several_settings_and_the_seed_can_differ_at_once(
    store: RunStore, busy_queue: RunQueue, open_page: Open, compared: list[str]
) -> None:
    run = made_run(store, experiment=tiny())
    app = twin(open_page(TRAIN, run=run.id), run, "training.optimizer", "seed")
    app.selectbox(key=f"twin-{run.id}-training.optimizer").set_value("sgd").run()
    app.number_input(key=f"twin-{run.id}-seed").set_value(7).run()
    app.button(key=f"twin-start-{run.id}").click().run()
    (made,) = waiting(store)
    assert (made.experiment.training.optimizer, made.experiment.seed) == ("sgd", 7)


def test_a_twin_that_cannot_be_is_said_at_its_setting(
    store: RunStore, busy_queue: RunQueue, open_page: Open
) -> None:
    run = made_run(store, experiment=tiny())
    app = twin(open_page(TRAIN, run=run.id), run, "model.n_heads")
    app.number_input(key=f"twin-{run.id}-model.n_heads").set_value(3).run()
    assert "does not divide" in said(app) or "must divide" in said(app)
    assert app.button(key=f"twin-start-{run.id}").disabled
    assert waiting(store) == []


def test_a_twin_that_is_refused_says_why_and_leaves_nothing(
    store: RunStore,
    open_page: Open,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    compared: list[str],
) -> None:
    monkeypatch.setenv("TFM_MAX_STEPS", "5")
    request.getfixturevalue("busy_queue")
    run = made_run(store, experiment=tiny())
    app = twin(open_page(TRAIN, run=run.id), run, "seed")
    app.number_input(key=f"twin-{run.id}-seed").set_value(7).run()
    app.button(key=f"twin-start-{run.id}").click().run()
    assert "the limit here is 5" in said(app)
    assert waiting(store) == []
    assert compared == []


def test_seeds_of_a_run_that_are_refused_say_why(
    store: RunStore,
    open_page: Open,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    compared: list[str],
) -> None:
    monkeypatch.setenv("TFM_MAX_STEPS", "5")
    request.getfixturevalue("busy_queue")
    run = made_run(store, experiment=tiny())
    app = open_page(TRAIN, run=run.id)
    app.button(key="run-seeds").click().run()
    assert "the limit here is 5" in app.info[0].value
    assert compared == []


def test_a_run_is_compared_with_others(
    store: RunStore, open_page: Open, compared: list[str]
) -> None:
    run = made_run(store, experiment=tiny())
    open_page(TRAIN, run=run.id).button(key="run-compare").click().run()
    assert compared == [run.id]
