"""Language models: they see the past only, learn a batch by heart, and resume to the last bit."""

import pytest
import torch

from tests.training.test_loop import experiment, goes_on_with_the_same_curve
from tfm_core.choices.variants.positions import POSITIONS_OF_WORDS
from tfm_core.data.tasks import corpus_task
from tfm_core.data.text.english_sentences import entropy_per_token
from tfm_core.training.events import Measured
from tfm_core.training.loop import build, train

TEXT = "one two three four five six seven eight nine ten, and so on, and so on. " * 9


def language(name="own-text", /, **sections):
    own = {"own-text": {"text": TEXT, "context": 16}, "grammar": {"n_train": 64}}[name]
    sizes = {"n_validation": 16, "n_test": 16}
    task = {**sizes, **own, "unit": "characters", **sections.pop("task", {})}
    training = {"steps": 6, "batch_size": 8, "validate_every": 3, "snapshots": 4}
    training |= sections.pop("training", {})
    return experiment("decoder-only", name, task=task, training=training, **sections)


NAMES = ("own-text", "grammar")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("position", POSITIONS_OF_WORDS)
def test_later_tokens_change_no_earlier_answer(name, position):
    trainer = build(language(name, model={"position": position, "max_len": 128}))
    rows = trainer.data.validation.tgt[:3, :9].clone()
    before = trainer.model(rows[:, :0], rows)
    rows[:, 6] = (rows[:, 6] + 1) % trainer.objective.n_classes
    after = trainer.model(rows[:, :0], rows)
    assert torch.equal(before[:, :6], after[:, :6])
    assert not torch.allclose(before[:, 6:], after[:, 6:])


@pytest.mark.parametrize("name", NAMES)
def test_a_trainer_that_goes_on_gives_the_same_curve_bit_for_bit(name, tmp_path):
    goes_on_with_the_same_curve(language(name, model={"dropout": 0.2}), tmp_path)


def test_windows_come_from_the_seed_and_a_short_text_is_one():
    one, same, other = (build(language().replace(seed=seed)) for seed in (0, 0, 1))
    assert torch.equal(one.batch_indices(5), same.batch_indices(5))
    assert not torch.equal(one.batch_indices(5), other.batch_indices(5))
    seen = torch.cat([one.batch_indices(step) for step in range(1, one.steps_per_epoch + 1)])
    assert len(seen.unique()) == len(seen)  # no window twice in an epoch
    trainer = build(language(task={"text": "abcdefghij" * 3, "context": 64}))
    assert trainer.data.windows.length == 24
    assert trainer.objective.n_train == 1
    list(train(trainer))
    windows = build(language("own-text")).data.windows
    trainer = build(language("own-text"))
    started = next(train(trainer))
    # all windows together hold so many tokens, and the text holds so few
    assert started.reads_per_epoch == len(windows) * windows.length / len(windows.ids) > 5
    assert next(train(build(language("grammar")))).reads_per_epoch == 1


def test_the_measured_loss_is_the_mean_surprise_above_the_floor_of_a_grammar():
    trainer = build(language())
    trainer.model.eval()
    loss, accuracy, whole = trainer.objective.measure(trainer.model, "validation")
    nats = right = count = 0
    for row in trainer.data.validation.tgt.tolist():
        row = [id for id in row if id]
        logs = (
            trainer.model(torch.empty(1, 0).long(), torch.tensor([row[:-1]]))[0]
            .detach()
            .log_softmax(-1)
        )
        nats -= sum(float(log[id]) for log, id in zip(logs, row[1:], strict=True))
        right += sum(int(log.argmax()) == id for log, id in zip(logs, row[1:], strict=True))
        count += len(row) - 1
    assert loss == pytest.approx(nats / count, rel=1e-5)
    assert accuracy == pytest.approx(right / count)
    assert whole is None
    assert count == len(corpus_task(trainer.experiment.task).tokens) // 10
    assert build(language("grammar")).objective.loss_lower_bound() == entropy_per_token(
        "characters"
    )
    assert build(language()).objective.loss_lower_bound() is None
    smoothed = language("grammar", training={"label_smoothing": 0.1})
    assert build(smoothed).objective.loss_lower_bound() is None


@pytest.mark.wide
def test_a_grammar_model_comes_near_its_floor_and_not_below():
    chosen = language(
        "grammar",
        model={"d_model": 32, "n_heads": 4, "d_ff": 64, "position": "learned"},
        task={"unit": "words", "n_train": 8000, "n_test": 2000},
        training={"steps": 400, "batch_size": 64, "learning_rate": 0.008, "validate_every": 400},
    )
    *_, test = (e for e in train(build(chosen)) if isinstance(e, Measured) and e.split == "test")
    floor = entropy_per_token("words")
    assert 0.98 * floor < test.loss < 1.12 * floor  # 2,000 sentences tell it to about 1%
