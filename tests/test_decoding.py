"""Decoding: greedy writing is what whole-sequence accuracy counts."""

import pytest
import torch

from tests.models.variants import SEQUENCE_FAMILIES, text_batch, text_model
from tests.training.test_loop import experiment
from tfm_core.data.vocabulary import EOS, PAD
from tfm_core.decoding import greedy, greedy_steps
from tfm_core.training.loop import build, train


@pytest.mark.parametrize(
    ("family", "steps"),
    [("encoder-decoder", 50), ("encoder-only", 10), ("decoder-only", 120), ("recurrent", 50)],
)
def test_whole_sequence_accuracy_equals_that_of_greedy_decoding(family, steps):
    trainer = build(
        experiment(
            family,
            "copy",
            model={"d_model": 32},
            task={"size": 4, "n_train": 512, "n_validation": 97},
            training={"steps": steps, "batch_size": 32, "learning_rate": 0.01},
        )
    )
    list(train(trainer))
    _, _, whole = trainer.objective.measure(trainer.model, "validation")
    targets = trainer.data.validation.tgt[:, 1:]
    ids = greedy(trainer.model, trainer.data.validation.src, max_len=targets.size(1)).ids
    ids = torch.nn.functional.pad(ids, (0, targets.size(1) - ids.size(1)), value=PAD)
    assert 0.02 < whole < 1.0  # neither trivial
    assert (ids == targets).all(1).float().mean().item() == pytest.approx(whole)


@pytest.mark.parametrize("family", SEQUENCE_FAMILIES)
def test_nothing_is_written_behind_the_end(family):
    model = text_model(family)
    written = greedy(model, text_batch()[0], max_len=13)
    ended = ((written.ids == EOS).cumsum(1) - (written.ids == EOS).int()) > 0
    assert (written.ids[ended] == PAD).all()
    assert (written.confidence[ended] == 0).all()
    assert (written.confidence[~ended] > 0).all()
    assert model.training


def test_each_step_adds_one_token_and_changes_none():
    model = text_model("encoder-decoder")
    before = None
    for written in greedy_steps(model, text_batch()[0], max_len=7):
        if before is not None:
            assert torch.equal(written.ids[:, :-1], before)
        before = written.ids


def test_at_least_one_token_is_asked_for():
    with pytest.raises(ValueError, match="max_len is 0"):
        greedy(text_model("decoder-only"), text_batch()[0], max_len=0)
