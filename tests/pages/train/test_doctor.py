"""The doctor on the Train page: before the start, beside the curves, and on the run that cures."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.runs import run_time
from pages.ui.typed import escape
from tests.inspect.symptoms.recorded_curves import recorded
from tests.pages.learned_runs import learned_run
from tests.pages.looking import unmarked
from tests.pages.made_runs import made_run
from tfm_core.config import Experiment
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run
from tfm_core.runs.status import State
from tfm_core.runs.store import RunStore

TRAIN = "train/page.py"


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    yield
    run_time.wait()


def said(app: AppTest) -> str:
    kinds = ("caption", "markdown", "error")
    return unmarked("\n".join(str(element.value) for kind in kinds for element in app.get(kind)))


def ill(store: RunStore, name: str, *, state: State = "finished") -> Run:
    """A run with the curves of a sick training, and no checkpoint."""
    known = next(one for one in recorded("sick") if one.name == name)
    run = made_run(store, state=state, experiment=known.experiment, step=known.last)
    whole = known.whole
    lines = [{**whole.started, "event": "started"}]
    for step, loss in zip(whole.steps["step"].tolist(), whole.steps["loss"].tolist(), strict=True):
        lines.append({"event": "step", "step": int(step), "loss": loss})
    for step, loss in zip(
        whole.validation["step"].tolist(), whole.validation["loss"].tolist(), strict=True
    ):
        measured = {"event": "measured", "split": "validation", "step": int(step)}
        lines.append({**measured, "loss": loss})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder / "events.jsonl").write_text(text, encoding="utf-8")
    return run


def test_a_sick_rate_is_said_beside_start_and_set_right_by_one_press(open_page) -> None:
    app = open_page(TRAIN, **{"model.family": "encoder-decoder", "training.learning_rate": "10"})
    assert "**Learning rate:** 1,667 times the usual 0.006" in said(app)
    app.button(key="start-cure").click().run()
    assert not app.exception
    assert "times the usual" not in said(app)
    assert not [button for button in app.button if button.key == "start-cure"]


def test_a_run_that_is_well_says_so_in_a_few_words_and_offers_nothing(store, watch) -> None:
    app = watch(learned_run(store, "reverse").id)
    assert "Doctor: no problems found" in said(app)
    assert "stethoscope" not in said(app)


@pytest.mark.parametrize(
    ("name", "words", "label"),
    [
        ("diverged: translate lr 10 1", "It diverged at step 2", "Start again: learning rate"),
        ("overfits: sort 1", "overfits since step 47", "Start again: 1,000 to learn"),
    ],
)
def test_a_sick_run_is_told_with_one_press_that_cures_it(store, watch, name, words, label) -> None:
    app = watch(ill(store, name).id)
    assert words in said(app)
    assert "no problems found" not in said(app)
    assert app.button(key="doctor-cure").label.startswith(escape(label))


def test_a_cure_is_a_new_run_in_the_line_that_says_whose_it_is(store, busy_queue, watch) -> None:
    sick = ill(store, "diverged: translate lr 10 1")
    app = watch(sick.id)
    app.button(key="doctor-cure").click().run()
    assert not app.exception
    cured = next(run for run in store.list() if run.meta.cure_of == sick.id)
    assert busy_queue.position(cured.id) == 1
    assert cured.meta.name == "Backwards, cured"
    assert cured.experiment.training.learning_rate == 0.006
    assert "Fix of “Backwards” from the start: learning rate 0.006." in said(app)
    assert app.button(key="doctor-compare").label == "Compare with the original"
    assert sick.status.state == "finished"


def test_a_sick_run_that_trains_is_asked_to_stop_for_its_cure(store, busy_queue, watch) -> None:
    sick = ill(store, "diverged: translate lr 10 1", state="running")
    watch(sick.id).button(key="doctor-cure").click().run()
    (asked,) = (sick.folder / "requests").iterdir()
    assert asked.name.endswith("stop")


def test_a_run_that_waits_or_says_too_little_is_not_judged(store, watch) -> None:
    for state in ("queued", "finished"):
        app = watch(made_run(store, state=state).id)
        assert "Doctor:" not in said(app)
        assert "stethoscope" not in said(app)


def test_presets_start_without_a_warning(open_page) -> None:
    experiment: Experiment = PRESETS["reverse"].experiment
    app = open_page(TRAIN, **{"model.family": experiment.model.family, "task.name": "reverse"})
    assert "stethoscope" not in said(app)
