"""Trainings that stop early or are changed on the way."""

import math

import pytest
import torch

from tests.training.going_on import resumed_at
from tests.training.test_loop import experiment, records
from tfm_core.choices.config.base import ConfigError
from tfm_core.choices.config.experiment import TURNABLE, Turn, checked, turn_of
from tfm_core.runs.figures import figures, summary
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.requests import Control
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError
from tfm_core.training import checkpoints
from tfm_core.training.events import Finished, Measured, SnapshotDue, Step, Turned, to_record
from tfm_core.training.loop import build, train
from tfm_core.training.progress import Patience

# far too high a learning rate: the loss rises and falls, and soon no longer gets any lower
RESTLESS = {"steps": 60, "validate_every": 2, "learning_rate": 0.5, "schedule": "constant"}

IMPATIENT = experiment(training={**RESTLESS, "patience": 3})


def validations(events):
    return [e for e in events if isinstance(e, Measured) and e.split == "validation" and e.step]


@pytest.mark.parametrize(
    ("limit", "losses", "best", "is_over"),
    [
        (0, [1.0, 2.0, 3.0, 4.0], 1, False),
        (2, [3.0, 2.0, 2.5], 2, False),
        (2, [3.0, 2.0, 2.0, 2.0], 2, True),  # as low is not lower
        (2, [3.0, 4.0, 2.0, 4.0], 3, False),
        (1, [math.nan], None, True),
    ],
)
def test_patience_counts_validations_in_a_row(limit, losses, best, is_over):
    patience = Patience(limit)
    for step, loss in enumerate(losses, 1):
        patience.update(step, loss)
    assert (patience.best_step, patience.is_over) == (best, is_over)
    again = Patience(limit)
    again.restore(patience.state())
    assert again == patience


def test_patience_ends_the_training_exactly_or_cuts_nothing_off():
    events = list(train(build(IMPATIENT)))
    losses = [event.loss for event in validations(events)]
    lowest = losses.index(min(losses))
    assert len(losses) == lowest + 1 + 3
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.step == 2 * len(losses) < 60
    assert finished.best_step == 2 * (lowest + 1)
    assert (
        f"Stopped early at step {finished.step}: no improvement since step {finished.best_step}"
        in (finished.reason)
    )
    assert [e.step for e in events if isinstance(e, SnapshotDue)][-1] == finished.step
    end = next(e for e in train(build(IMPATIENT)) if isinstance(e, Finished)).step
    exact = experiment(training={**RESTLESS, "patience": 3, "steps": end})
    assert list(train(build(exact)))[-1].reason is None


def test_with_patience_the_best_weights_are_tested_and_else_the_last():
    patient = list(records(build(experiment(training=RESTLESS))))
    cut = list(records(build(IMPATIENT)))
    steps = [event for event in cut if event["event"] == "step"]
    assert [event for event in patient if event["event"] == "step"][: len(steps)] == steps
    assert patient[-1]["step"] == 60
    assert patient[-1]["reason"] is None
    assert patient[-1]["best_step"] is not None
    trainer = build(experiment(training=RESTLESS))
    *_, test, finished = train(trainer)
    assert (test.split, test.step) == ("test", finished.step)
    trainer.model.eval()
    with torch.inference_mode():
        assert trainer.objective.measure(trainer.model, "test")[0] == test.loss
    trainer = build(IMPATIENT)
    events = list(train(trainer))
    last = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    *_, test, finished = events
    assert test.split == "test"
    assert test.step == finished.best_step == trainer.best.step < finished.step
    trainer.model.load_state_dict(trainer.best.weights)
    trainer.model.eval()
    with torch.inference_mode():
        validation = trainer.objective.measure(trainer.model, "validation")
        assert trainer.objective.measure(trainer.model, "test")[0] == test.loss
    assert validation[0] == min(event.loss for event in validations(events))
    again = build(IMPATIENT)
    list(train(again))
    for name, value in again.model.state_dict().items():
        assert torch.equal(value, last[name]), name


@pytest.mark.parametrize("patience", [0, 3])
def test_the_test_set_can_be_left_unopened(patience):
    closed = experiment(training={**RESTLESS, "patience": patience, "final_test": False})
    splits = {event.split for event in train(build(closed)) if isinstance(event, Measured)}
    assert splits == {"validation"}


@pytest.mark.parametrize("back", [0, 1, 3])
def test_going_on_from_a_checkpoint_stops_at_the_same_step(back, tmp_path):
    whole = build(IMPATIENT)
    expected = list(records(whole))
    at = whole.step - back
    resumed = resumed_at(IMPATIENT, at, tmp_path)
    assert (tmp_path / "best").exists()
    again = list(records(resumed))
    assert again[1:] == [event for event in expected[:-2] if event["step"] > at] + expected[-2:]
    for name, value in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value), name


def test_a_run_says_that_it_stopped_early_and_keeps_its_best_weights(tmp_path):
    store = RunStore(tmp_path, recorded=None)
    run = store.create(IMPATIENT)
    control = Control(run.folder)

    def stop(event):
        if isinstance(event, Step) and event.step == 5:
            control.stop_reason = "Enough."

    execute(run, control, stop)
    status = execute(run)
    assert status.state == "finished"
    assert status.reason.startswith(
        f"Stopped early at step {status.step}: no improvement since step"
    )
    curves = run.curves()
    assert curves.finished["reason"] == status.reason
    best = curves.best_validation()
    assert curves.validation["step"][best] == curves.finished["best_step"]
    _model, step = checkpoints.load_model(run.experiment, run.folder / "checkpoints" / "best")
    assert step == curves.finished["best_step"] == curves.test.last("step")
    values = figures(run)
    assert values["tested"] == "best"
    assert f"test of the weights of step {step}, best by validation: loss" in summary(values)


def test_a_copy_of_a_run_that_stopped_early_trains_all_its_steps(tmp_path):
    store = RunStore(tmp_path, recorded=None)
    run = store.create(IMPATIENT)
    ended = execute(run).step
    copy = store.fork(run.id, steps=ended + 6)
    assert copy.experiment.training.patience == 0
    assert execute(copy).step == ended + 6


def test_a_run_that_is_finished_with_patience_left_is_forked_as_it_is(tmp_path):
    store = RunStore(tmp_path, recorded=None)
    run = store.create(experiment(training={"patience": 50}))
    execute(run)
    assert store.fork(run.id, steps=9).experiment.training.patience == 50


STEPS = 24

CHOSEN = {
    "encoder-decoder": experiment(model={"dropout": 0.2}, training={"steps": STEPS}),
    "recurrent": experiment("recurrent", "copy", model={"n_layers": 2}, training={"steps": STEPS}),
    "vit": experiment("vit", "mnist-5000", training={"steps": STEPS, "optimizer": "muon"}),
    "halved": experiment(training={"steps": STEPS, "batch_warmup": 0.5}),
}

ALL_TURNED = (
    Turn(5, "training.learning_rate", 0.01),
    Turn(7, "training.batch_size", 5),
    Turn(7, "model.dropout", 0.3),
    Turn(11, "training.weight_decay", 0.5),
    Turn(13, "training.label_smoothing", 0.2),
    Turn(17, "training.batch_size", 16),
    Turn(19, "model.dropout", 0.0),
)


def turned(chosen, turns=ALL_TURNED):
    trainer = build(chosen)
    trainer.turns = turns
    return trainer


@pytest.mark.parametrize("chosen", CHOSEN.values(), ids=CHOSEN)
def test_a_training_is_the_same_until_its_first_turn_and_another_after_it(chosen):
    plain, changed = list(records(build(chosen))), list(records(turned(chosen)))
    until = [record for record in plain if record.get("step", 0) < 5]
    assert changed[: len(until)] == until
    assert changed != plain
    assert changed == list(records(turned(chosen)))


@pytest.mark.parametrize("stop", [6, 12, 18])
@pytest.mark.parametrize("chosen", CHOSEN.values(), ids=CHOSEN)
def test_a_resumed_training_with_turns_ends_bit_for_bit_the_same(chosen, stop, tmp_path):
    whole = turned(chosen)
    expected = [record for record in records(whole) if record.get("step", 0) > stop]
    stopped = turned(chosen)
    for event in train(stopped):
        if isinstance(event, Step) and event.step == stop:
            break
    checkpoints.save(stopped, tmp_path)
    resumed = turned(chosen)
    checkpoints.load(resumed, tmp_path)
    after = [record for record in records(resumed) if record["event"] != "started"]
    assert after == expected
    for ours, theirs in zip(resumed.parameters, whole.parameters, strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("setting", TURNABLE)
def test_each_setting_that_can_be_turned_changes_what_is_learned(setting):
    chosen = CHOSEN["encoder-decoder"]
    value = 5 if setting == "training.batch_size" else 0.4
    one, other = build(chosen), turned(chosen, (Turn(9, setting, value),))
    list(train(one))
    list(train(other))
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters, other.parameters, strict=True))


def test_a_turn_of_batch_or_decay_is_checked_and_comes_back():
    trainer = turned(CHOSEN["encoder-decoder"], (Turn(7, "training.batch_size", 5),))
    n = trainer.objective.n_train
    epochs = [event.epoch for event in train(trainer) if isinstance(event, Step)]
    assert epochs == sorted(epochs)
    assert trainer.batch_size == 5
    read_since = torch.cat([trainer.batch_indices(step) for step in range(7, 7 + n // 5)])
    assert len(set(read_since.tolist())) == len(read_since) == n // 5 * 5
    assert trainer.epoch == 1 + (STEPS - 6) / (n // 5)
    trainer = turned(CHOSEN["encoder-decoder"], (Turn(1, "training.weight_decay", 0.5),))
    list(train(trainer))
    decays = {
        group["is_decayed"]: group["weight_decay"] for group in trainer.optimizer.param_groups
    }
    assert decays == {True: 0.5, False: 0.0}
    chosen = CHOSEN["encoder-decoder"]
    assert checked(chosen, Turn(3, "training.batch_size", 32.0)) == Turn(
        3, "training.batch_size", 32
    )
    with pytest.raises(ConfigError, match="less than 1"):
        checked(chosen, Turn(3, "model.dropout", 1.5))
    with pytest.raises(StudentError, match="cannot change during training"):
        checked(chosen, Turn(3, "model.n_heads", 4))
    for turn in ALL_TURNED:
        assert turn_of(to_record(Turned(turn.step, turn.setting, turn.value))) == turn


@pytest.mark.parametrize("record", [{}, {"step": "3"}, {"step": 3, "setting": "seed", "value": 1}])
def test_a_record_of_no_turn_is_none(record):
    assert turn_of(record) is None
