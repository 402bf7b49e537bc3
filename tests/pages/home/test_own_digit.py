"""The board on Home: what stands on it is read by a run, and believed only where it is sound."""

import json
import shutil
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.app.model import digit_models
from pages.components.digits import DrawnDigit, valid_drawing
from pages.home import hero
from pages.home.hero import DIGITS, TRANSLATOR
from tests.pages.looking import part_of
from tests.training.test_loop import experiment
from tfm_core.background import Background
from tfm_core.inspect.attention.pictures import answers_by_step, right_since
from tfm_core.runs.process.execute import execute
from tfm_core.runs.record import weights
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED, RunStore


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder of recorded runs with one of digits, which learned for forty steps."""
    store = RunStore(tmp_path_factory.mktemp("runs"), recorded=None)
    training = {"steps": 40, "snapshots": 12, "learning_rate": 0.02, "batch_size": 32}
    run = store.create(experiment("vit", "mnist-5000", training=training))
    assert execute(run).state == "finished"
    recorded = tmp_path_factory.mktemp("recorded")
    shutil.copytree(run.folder, recorded / DIGITS)
    shutil.copytree(RECORDED / TRANSLATOR, recorded / TRANSLATOR)
    return recorded


@pytest.fixture
def digits(trained, store, monkeypatch):
    """The recorded run of digits, on a Home that nobody has opened before."""
    monkeypatch.setattr(store, "recorded", trained)
    monkeypatch.setattr(digit_models, "LOADED", Background("digits"))
    return store.get(DIGITS)


def sent(app: AppTest) -> dict[str, Any]:
    """Return what the browser gets for the board."""
    shown: dict[str, Any] = json.loads(part_of(app, "digit_reader").json)[0]
    return shown


def awake(app: AppTest, run: Run) -> AppTest:
    """The same page once the models are loaded."""
    digit_models.load(run).exception()  # the page reports it when it reads
    return app.run()


@pytest.mark.wide
def test_a_sample_stands_on_the_board_and_is_answered_once_the_models_are_there(digits, open_page):
    app = open_page()
    first = sent(app)
    assert first["reading"] is None
    assert first["note"] == "Loading the model …"
    assert first["shown"] == [0, str(hero.FIRST)]
    awake(app, digits)
    found = sent(app)["reading"]
    picture = digits.probe().images[hero.FIRST]
    steps, shares = answers_by_step(digits, picture)
    assert found["steps"] == list(steps)
    assert np.array(found["shares"]) == pytest.approx(shares, abs=1e-3)
    digit = int(shares[-1].argmax())
    assert steps[found["since"]] == right_since((steps, shares), digit)
    assert found["said"] == digit_models.answer((steps, shares), "0123456789", "{:,}".format)


def test_what_keeps_a_run_from_reading_is_said_beside_the_board(digits, store, open_page, tmp_path):
    store.recorded = tmp_path / "recorded"  # set back by the fixture
    shutil.copytree(RECORDED / TRANSLATOR, store.recorded / TRANSLATOR)
    run = Run(shutil.copytree(digits.folder, store.recorded / DIGITS))
    for step in run.weight_steps():
        weights.write(run.folder, step, {"head.weight": np.zeros((3, 2), np.float32)})
    app = awake(open_page(), run)
    assert sent(app)["reading"] is None
    assert "saved no weights" in sent(app)["note"]


def test_what_no_board_sends_is_not_believed():
    for value in (None, [], 7, "3", [1], ["1", "3"], [True, "3"], [1, 3], [1, "3", 0]):
        assert valid_drawing(value) is None, value
    for text in ("", "12", "٣", "A" * 16728, "<b>"):
        found = valid_drawing([5, text])
        assert found == DrawnDigit(5, ""), text
        assert found.picture(np.zeros((10, 28, 28), np.uint8)) is None


def test_a_home_without_recorded_runs_has_neither_stage_nor_board(store, open_page):
    app = open_page()
    drawn = {part.proto.component_name for part in app.get("bidi_component")}
    assert not drawn & {"stage", "digit_reader"}
