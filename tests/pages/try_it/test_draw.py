"""The page of drawings: what stands on the board is read, looked at and kept in the address."""

import base64
import json
import shutil
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.app.model import your_input
from pages.components.digits import SIDE, DrawnDigit, valid_drawing
from pages.try_it import pictures
from pages.try_it.pictures import PICTURE
from tests.pages.looking import part_of, said
from tests.pages.opening import opened_at
from tfm_core.background import Background
from tfm_core.data import user_picture
from tfm_core.inspect.attention.pictures import PictureHistory, picture_history
from tfm_core.runs import snapshots
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED

RUN = "recorded-digits"
KEY = f"draw-{RUN}"


@pytest.fixture
def digits(store, recorded):
    """The recorded run of digits, its models loaded."""
    run = store.get(RUN)
    your_input.load_models(run).result()
    return run


def opened(**query: str) -> AppTest:
    return opened_at("try_it/page.py", **{"view": "draw", **query})


def sent(app: AppTest) -> dict[str, Any]:
    """Return what the browser gets for the board."""
    shown: dict[str, Any] = json.loads(part_of(app, "digit_lab").json)[0]
    return shown


def one() -> np.ndarray:
    drawing = np.zeros((SIDE, SIDE), np.uint8)
    drawing[15:95, 50:60] = 255
    return drawing


def drawn(app: AppTest, number: int, text: str, *, rests: bool = False) -> AppTest:
    app.session_state[KEY] = {"drawn": [number, text], "kept": number if rests else 0}
    return app.run()


def encoded(drawing: np.ndarray) -> str:
    return base64.b64encode(drawing.tobytes()).decode()


def test_a_recorded_run_reads_a_sample_where_nobody_has_trained_anything(digits):
    shown = sent(opened())
    steps, shares, heads, rollout = picture_history(digits, digits.probe().images[3])
    assert shown["shown"][1] == "3"
    assert shown["labels"] == list(range(10))
    assert shown["reading"]["steps"] == list(steps)
    assert np.array(shown["reading"]["shares"]) == pytest.approx(shares, abs=1e-3)
    n_maps = shown["layers"] * shown["heads"] + 1
    maps = np.frombuffer(base64.b64decode(shown["reading"]["maps"]), np.uint8)
    maps = maps.reshape(len(steps), n_maps, shown["patches"])
    assert (maps.max(-1) == 255).all()
    assert maps[-1, -1].argmax() == rollout[-1].argmax()
    assert maps[2, 1].argmax() == heads[2, 0, 1].argmax()


def test_drawings_are_made_as_mnist_told_of_and_kept_in_the_address(digits):
    app = drawn(opened(), 5, encoded(one()))
    reading = sent(app)["reading"]
    picture, _notes = user_picture.picture_to_input(one(), digits.experiment.task.facts)
    assert reading["number"] == 5
    assert base64.b64decode(reading["seen"]) == picture.tobytes()
    assert "centred, as in MNIST" in reading["how"]
    shares = picture_history(digits, picture)[1]
    assert np.array(reading["shares"]) == pytest.approx(shares, abs=1e-3)
    shown = sent(drawn(opened(), 2, ""))
    assert shown["reading"] is None
    assert shown["note"] == "Draw a digit; the bars follow each stroke."
    app = opened(digit="picture-eJw")
    assert sent(app)["shown"][1] == "3"
    assert len(app.warning) == 1
    assert sent(app)["reading"] is not None
    app = drawn(opened(), 5, encoded(one()))
    assert "digit" not in app.query_params
    app = drawn(app, 5, encoded(one()), rests=True)
    said_there = app.query_params["digit"]
    assert said_there.startswith(PICTURE)
    again = opened(digit=said_there)
    reading = sent(again)["reading"]
    assert base64.b64decode(reading["seen"]) == base64.b64decode(sent(app)["reading"]["seen"])
    app = drawn(app, 6, "8", rests=True)
    assert app.query_params["digit"] == "8"


def test_a_run_that_reads_no_drawings_is_named_and_another_one_shown(digits):
    app = opened(run="recorded-korean")
    assert "This page needs a model that reads digits" in said(app)
    assert app.query_params["run"] == "recorded-korean"
    assert sent(app)["reading"] is not None


def test_without_any_run_one_can_be_trained(store):
    app = opened()
    assert app.button(key="head-train-vit-digits")


def test_a_board_waits_for_the_models_and_says_what_keeps_a_run_from_reading(
    store, tmp_path, monkeypatch
):
    monkeypatch.setattr(your_input, "LOADED", Background("digits"))
    monkeypatch.setattr(your_input, "models_are_loaded", lambda _run: False)
    monkeypatch.setattr(store, "recorded", tmp_path / "recorded")
    run = Run(shutil.copytree(RECORDED / RUN, store.recorded / RUN))
    shutil.rmtree(run.folder / "checkpoints")
    for step in run.weight_steps():
        snapshots.write_weights(run.folder, step, {"head.weight": np.zeros((3, 2), np.float32)})
    app = opened(run=RUN)
    assert sent(app)["reading"] is None
    assert sent(app)["note"] == "Loading the model …"
    monkeypatch.setattr(your_input, "models_are_loaded", lambda _run: True)
    app = app.run()
    assert sent(app)["reading"] is None
    assert "no checkpoint" in sent(app)["note"]


def test_what_no_board_sends_is_not_believed():
    for value in (None, [], 7, "3", [1], ["1", "3"], [True, "3"], [1, 3], [1, "3", 0]):
        assert valid_drawing(value) is None, value
    for text in ("", "12", "٣", "A" * 16728, "<b>"):
        found = valid_drawing([5, text])
        assert found == DrawnDigit(5, ""), text
        assert found.picture(np.zeros((10, 28, 28), np.uint8)) is None


def of(*answers: int) -> PictureHistory:
    """Looks of a model of three classes, which read these."""
    shares = np.full((len(answers), 3), 0.1, np.float32)
    shares[np.arange(len(answers)), answers] = 0.8
    maps = np.zeros((len(answers), 1, 1, 2, 2))
    return tuple(range(0, 10 * len(answers), 10)), shares, maps, maps[:, 0, 0]


NAMES = ("0", "1", "2")


def test_since_when_a_digit_that_was_meant_is_read():
    for answers, index, since, facts in (
        ((1, 2, 2), 2, 1, ("step 10 (epoch 2.5)",)),
        ((2, 2, 2), 2, 0, ("random weights",)),
        ((2,), 2, 0, ("no earlier weights",)),
        ((1, 0, 2), 0, None, ("a 2", "step 10 (epoch 2.5)", "80.0%")),
        ((1, 1, 2), 0, None, ("never a 0", "10.0%", "step 0")),
    ):
        at, sentence = pictures.verdict(
            of(*answers), index, NAMES, lambda step: f"{step} (epoch {step / 4})"
        )
        assert at == since
        assert all(fact in sentence for fact in facts), sentence
