"""The board on Home: what stands on it is read by a run, and believed only where it is sound."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.components.digits import SIDE, Drawing, valid_drawing
from pages.home import hero
from pages.home.hero import DIGITS, TRANSLATOR, digit_words
from pages.ui.model import digit_models
from tests.pages.looking import part_of
from tests.training.test_loop import experiment
from tfm_core.data.own_picture import picture_to_input
from tfm_core.inspect.progress.pictures import answers_by_step, right_since
from tfm_core.runs.process.execute import execute
from tfm_core.runs.record import weights
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED, RunStore

Open = Callable[..., AppTest]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def digits(trained: Path, store: RunStore, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The recorded run of digits, on a Home that nobody has opened before."""
    monkeypatch.setattr(store, "recorded", trained)
    digit_models.models.clear()
    return store.get(DIGITS)


def sent(app: AppTest) -> dict[str, Any]:
    """Return what the browser gets for the board."""
    shown: dict[str, Any] = json.loads(part_of(app, "digit_reader").json)[0]
    return shown


def awake(app: AppTest, run: Run) -> AppTest:
    """The same page once the models are loaded."""
    digit_models.models(str(run.folder), run).load().result()
    return app.run()


def one() -> np.ndarray:
    """A 1 as somebody draws it."""
    drawing = np.zeros((SIDE, SIDE), np.uint8)
    drawing[15:95, 50:60] = 255
    return drawing


def encoded(drawing: np.ndarray) -> str:
    return base64.b64encode(drawing.tobytes()).decode()


@pytest.mark.wide
def test_a_sample_stands_on_the_board_and_is_answered_once_the_models_are_there(
    digits: Run, open_page: Open
) -> None:
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
    assert found["said"] == digit_words(digit, shares[-1, digit], found["since"], steps)


def test_a_drawing_is_centred_as_mnist_is_and_answered(digits: Run, open_page: Open) -> None:
    app = awake(open_page(), digits)
    app.session_state[hero.KEY] = {"drawn": [7, encoded(one())]}
    app.run()
    assert not app.exception
    found = sent(app)["reading"]
    assert found["number"] == 7
    picture, _notes = picture_to_input(one(), digits.experiment.task.facts)
    assert np.array(found["shares"]) == pytest.approx(answers_by_step(digits, picture)[1], abs=1e-3)


def test_another_sample_is_answered_and_an_empty_board_says_what_to_do(
    digits: Run, open_page: Open
) -> None:
    app = awake(open_page(), digits)
    app.session_state[hero.KEY] = {"drawn": [1, "8"]}
    app.run()
    assert np.array(sent(app)["reading"]["shares"]) == pytest.approx(
        answers_by_step(digits, digits.probe().images[8])[1], abs=1e-3
    )
    app.session_state[hero.KEY] = {"drawn": [2, ""]}
    app.run()
    assert sent(app)["reading"] is None
    assert sent(app)["note"] == "Draw a digit; the bars follow each stroke."


def test_what_keeps_a_run_from_reading_is_said_beside_the_board(
    digits: Run, store: RunStore, open_page: Open, tmp_path: Path
) -> None:
    store.recorded = tmp_path / "recorded"  # set back by the fixture
    shutil.copytree(RECORDED / TRANSLATOR, store.recorded / TRANSLATOR)
    run = Run(shutil.copytree(digits.folder, store.recorded / DIGITS))
    for step in run.weight_steps():
        weights.write(run.folder, step, {"head.weight": np.zeros((3, 2), np.float32)})
    app = awake(open_page(), run)
    assert not app.exception
    assert sent(app)["reading"] is None
    assert "saved no weights" in sent(app)["note"]


def test_the_sentence_follows_probability_and_step() -> None:
    steps = (0, 341, 3000)
    assert "from step 341" in digit_words(4, 0.97, 341, steps)
    assert "random weights" in digit_words(4, 0.97, 0, steps)
    assert "Not sure: perhaps a 4 (41.0 %)" in digit_words(4, 0.41, 341, steps)


def test_what_no_board_sends_is_not_believed() -> None:
    for value in (None, [], 7, "3", [1], ["1", "3"], [True, "3"], [1, 3], [1, "3", 0]):
        assert valid_drawing(value) is None, value
    for text in ("", "12", "٣", "A" * 16728, "<b>"):
        found = valid_drawing([5, text])
        assert found == Drawing(5, ""), text
        assert found.picture(np.zeros((10, 28, 28), np.uint8)) is None


def test_a_home_without_recorded_runs_has_neither_stage_nor_board(
    store: RunStore, open_page: Open
) -> None:
    app = open_page()
    assert not app.exception
    drawn = {part.proto.component_name for part in app.get("bidi_component")}
    assert not drawn & {"stage", "digit_reader"}
