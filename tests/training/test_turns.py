"""Settings turned while a training runs: same turns, same curve, whether it is stopped or not."""

import pytest
import torch

from tests.training.test_loop import experiment, records
from tfm_core.choices.config.base import ConfigError
from tfm_core.choices.config.turns import TURNABLE, Turn, checked, turn_of
from tfm_core.sentences import StudentError
from tfm_core.training import checkpoints
from tfm_core.training.events import Step, Turned, to_record
from tfm_core.training.loop import build, train

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
    with pytest.raises(StudentError, match="cannot change during a training"):
        checked(chosen, Turn(3, "model.n_heads", 4))
    for turn in ALL_TURNED:
        assert turn_of(to_record(Turned(turn.step, turn.setting, turn.value))) == turn


@pytest.mark.parametrize("record", [{}, {"step": "3"}, {"step": 3, "setting": "seed", "value": 1}])
def test_a_record_of_no_turn_is_none(record):
    assert turn_of(record) is None
