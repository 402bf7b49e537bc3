"""The page of superposition: cold, while a seed trains, with seeds, and where nothing may start."""

from collections.abc import Callable
from concurrent.futures import Future

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.learn.experiments.test_page import guessed, labels
from tests.pages.looking import said
from tests.pages.opening import opened_at
from tfm_core.background import Asked, Background
from tfm_core.studies import superposition as core
from tfm_core.studies.superposition import ideal


@pytest.fixture
def shared(store, monkeypatch):
    """The trainings of this process, with none so far."""
    monkeypatch.setattr(core, "TRAININGS", Background("superposition"))
    return core.TRAININGS


def page() -> AppTest:
    return opened_at("findings/superposition.py")


def done(seed: int, *sparse: str) -> Asked[core.ToyTraining]:
    """A training that is done: shapes of the sparsest features, the others at a right angle."""
    training = core.ToyTraining(seed)
    for number, name in enumerate(("nothing", *sparse)):
        vectors = np.repeat(ideal("right-angle", core.N_FEATURES)[None], core.N_SPARSITIES, 0)
        vectors[-1] = ideal(name, core.N_FEATURES)
        biases = np.zeros((core.N_SPARSITIES, core.N_FEATURES))
        training.snapshots.append((100 * number, vectors, biases))
    training.finish(2.0)
    future: Future[None] = Future()
    future.set_result(None)
    return Asked(training, future)


def known() -> Asked[Callable[[], core.Best]]:
    future: Future[core.Best] = Future()
    future.set_result((np.full(core.N_SPARSITIES, 0.1), ("square",) * core.N_SPARSITIES))
    return Asked(future.result, future)


def test_one_press_trains_every_seed_once_for_all_visitors(shared, monkeypatch):
    asked: list[int] = []

    def run(training: core.ToyTraining) -> None:
        asked.append(training.seed)
        training.snapshots = done(training.seed, "pentagon").work.snapshots
        training.finish(2.0)

    monkeypatch.setattr(core.ToyTraining, "__call__", run)
    monkeypatch.setattr(core, "best", known().future.result)
    app = page()
    app.button(key="superposition-start").click().run()
    app.button(key="superposition-seeds").click().run()
    other = page()  # somebody else: all is there
    shared.wait()
    assert [asked.work.seed for asked in core.begun()] == [0, 1, 2, 3, 4]
    assert asked == [0, 1, 2, 3, 4]
    assert "5 seeds" not in labels(other.run())


def test_seeds_are_named_by_what_formed_and_counted(shared):
    shared._kept |= {
        0: done(0, "pentagon"),
        1: done(1, "square", "pentagon"),
        2: done(2, "square", "square"),
        core.BEST: known(),
    }
    words = said(guessed(page()))
    assert "95%: pentagon, formed at step 150 ± 71, in 2 of 3 seeds" in words
    assert "Dense: two at a right angle, in 3 of 3." in words


def test_a_seed_that_goes_on_or_failed_says_so(shared):
    one = done(0, "square", "pentagon").work
    shared._kept[0] = Asked(core.ToyTraining(0, one.snapshots), Future())
    app = guessed(page())
    assert "step 200" in said(app)
    failed: Future[None] = Future()
    failed.set_exception(MemoryError("no memory left"))
    shared._kept[0] = Asked(core.ToyTraining(0), failed)
    app = guessed(page())
    assert "no memory left" in said(app)
    assert "5 seeds" in labels(app)


def test_a_feature_that_is_switched_on_changes_the_error(shared):
    shared._kept |= {0: done(0, "square"), core.BEST: known()}
    app = guessed(page())
    before = said(app)
    assert "**Trained on dense features:** error 0.000" in before
    (field,) = [one for one in app.get("button_group") if one.key == "superposition-there"]
    field.set_value([1, 2, 3]).run()
    assert "**Trained on dense features:** error 0.810" in said(app)  # the third has no arrow there


def test_a_server_that_only_shows_trains_nothing(shared, monkeypatch):
    monkeypatch.setenv("TFM_MAX_RUNNING", "0")
    app = page()
    assert app.button(key="superposition-start").disabled
    assert "only shows trained runs" in app.button(key="superposition-start").help
