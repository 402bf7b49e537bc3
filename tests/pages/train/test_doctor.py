"""The doctor on the Train page: before the start, beside the curves, and on the run that cures."""

import json

import pytest

from pages.app.typed import escape
from tests.pages.learned_runs import learned_run
from tests.pages.looking import said
from tests.pages.made_runs import made_run
from tests.studies.recorded_curves import recorded
from tfm_core.runs.run import Run
from tfm_core.runs.status import State
from tfm_core.runs.store import RunStore
from tfm_core.sentences import Sentence
from tfm_core.training.progress import LOSS_DIVERGED

TRAIN = "train/page.py"


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


def test_a_sick_rate_is_said_beside_start_and_set_right_by_one_press(open_page):
    app = open_page(TRAIN, **{"model.family": "encoder-decoder", "training.learning_rate": "10"})
    assert "**Learning rate:** 1,667 times the usual 0.006" in said(app)
    app.button(key="start-cure").click().run()
    assert "times the usual" not in said(app)
    assert not [button for button in app.button if button.key == "start-cure"]


def test_a_lesson_that_asks_for_the_rate_gives_no_rate_away(store, open_page):
    app = open_page(TRAIN, lesson="learning-rate")
    assert app.session_state["draft"].values["training"]["learning_rate"] == 0.0001
    assert "hardly learn" not in said(app)
    assert not [button for button in app.button if button.key == "start-cure"]
    app = open_page(TRAIN, lesson="learning-rate", run=ill(store, "diverged: translate lr 10 1").id)
    assert not [button for button in app.button if button.key == "doctor-cure"]
    values = {"loss": "inf", "step": 3, "learning_rate": 10.0, "lower": 0.006}
    reason = Sentence(LOSS_DIVERGED.template, values)
    failed = made_run(store, state="failed", reason=reason)
    assert "try 0.006" not in said(open_page(TRAIN, lesson="learning-rate", run=failed.id))
    assert "try 0.006" in said(open_page(TRAIN, lesson="by-heart", run=failed.id))
    app = open_page(TRAIN, lesson="by-heart", run=ill(store, "diverged: translate lr 10 1").id)
    assert app.button(key="doctor-cure")


def test_a_run_without_symptoms_and_one_without_enough_steps_get_no_advice(store, watch):
    assert "stethoscope" not in said(watch(learned_run(store, "reverse").id))
    for state in ("queued", "finished"):
        assert "stethoscope" not in said(watch(made_run(store, state=state).id))


@pytest.mark.parametrize(
    ("name", "words", "label"),
    [
        ("diverged: translate lr 10 1", "It diverged at step 2", "Start again: learning rate"),
        ("overfits: sort 1", "overfitted since step 47", "Start again: 1,000 training examples"),
    ],
)
def test_a_sick_run_is_told_with_one_press_that_cures_it(store, watch, name, words, label):
    app = watch(ill(store, name).id)
    assert words in said(app)
    assert app.button(key="doctor-cure").label.startswith(escape(label))


def test_a_cure_is_a_new_run_in_the_line_that_says_whose_it_is(store, busy_queue, watch):
    sick = ill(store, "diverged: translate lr 10 1")
    app = watch(sick.id)
    app.button(key="doctor-cure").click().run()
    cured = next(run for run in store.list() if run.meta.cure_of == sick.id)
    assert cured.status.queue_position == 1
    assert cured.meta.name == "Backwards, fixed"
    assert cured.experiment.training.learning_rate == 0.006
    assert "Fix of “Backwards” from the start: learning rate 0.006." in said(app)
    assert app.button(key="doctor-compare").label == "Compare with the original"
    assert sick.status.state == "finished"


def test_a_sick_run_that_trains_is_asked_to_stop_for_its_cure(store, busy_queue, watch):
    sick = ill(store, "diverged: translate lr 10 1", state="running")
    watch(sick.id).button(key="doctor-cure").click().run()
    (asked,) = (sick.folder / "requests").iterdir()
    assert asked.name.endswith("stop")
