"""Masked language modelling: what is hidden, what counts, and the floor that nothing beats."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.training.test_loop import experiment
from tfm_core.data.text.masked_words import posterior
from tfm_core.data.vocabulary import MASK, PAD, SPECIALS
from tfm_core.layers.blocks import tokens_at
from tfm_core.probe.capture import capture
from tfm_core.training.events import Measured, Started, Step
from tfm_core.training.loop import build, train

HIDDEN, RANDOM = 0.8, 0.1  # Devlin et al. 2019, section 3.1; a tenth stays


@pytest.fixture(scope="module")
def trainer():
    return build(experiment("encoder-only", "masked-words", task={"n_train": 2000}))


class Knows(nn.Module):
    """Says the true chances of every hidden word."""

    def __init__(self, objective):
        super().__init__()
        self.objective = objective

    def forward(self, src, words, query_positions=None):
        vocabulary = self.objective.data.task.src_vocabulary
        logits = torch.full((*src.shape, len(vocabulary)), -30.0)
        for row, ids in enumerate(src.tolist()):
            tokens = [vocabulary.token(i) for i in ids if i != PAD]
            for position, shares in posterior(tokens, self.objective.data.n_draws).items():
                for word, share in shares.items():
                    logits[row, position, vocabulary.id_of(word)] = math.log(share)
        return logits if query_positions is None else tokens_at(logits, query_positions)


def hidden_batch(trainer, n=1000, seed=3):
    words = trainer.data.train.tgt[:n, 1:]
    generator = torch.Generator().manual_seed(seed)
    return words, *trainer.objective.hide(words, generator)


def test_as_many_words_are_hidden_as_the_task_says_and_others_each_step(trainer):
    words, _src, chosen = hidden_batch(trainer)
    lengths = (words != PAD).sum(1)
    expected = torch.tensor([max(1, round(n * 0.15)) for n in lengths.tolist()])
    assert torch.equal(chosen.sum(1), expected)
    words = trainer.data.train.tgt[:1, 1:].expand(4000, -1)
    n = int((words[0] != PAD).sum())
    _, chosen = trainer.objective.hide(words, torch.Generator().manual_seed(1))
    share = chosen.float().mean(0)[:n]
    expected = float(chosen[0].sum()) / n
    assert (share - expected).abs().max() < 5 * math.sqrt(expected / 4000)
    words = trainer.data.train.tgt[:, 1:].repeat(20, 1)
    src, chosen = trainer.objective.hide(words, torch.Generator().manual_seed(3))
    is_mask = src == trainer.objective.mask_id
    is_kept = src == words
    n = int(chosen.sum())
    others = trainer.objective.mask_id - len(SPECIALS)
    same = RANDOM / others  # the random word is the word itself
    assert not (chosen & (words == PAD)).any()
    assert torch.equal(src[~chosen], words[~chosen])
    for share, cells in (
        (HIDDEN, is_mask & chosen),
        (RANDOM - same, ~is_mask & ~is_kept & chosen),
        (1 - HIDDEN - RANDOM + same, is_kept & chosen),
    ):
        assert float(cells.sum()) / n == pytest.approx(
            share, abs=5 * math.sqrt(share * (1 - share) / n)
        )
    _, src, _ = hidden_batch(trainer, seed=3)
    _, again, _ = hidden_batch(trainer, seed=3)
    _, other, _ = hidden_batch(trainer, seed=4)
    assert torch.equal(src, again)
    assert not torch.equal(src, other)


def test_hidden_words_are_measured_alike_watched_or_not(trainer):
    _loss, accuracy, whole = trainer.objective.measure(Knows(trainer.objective), "validation")
    pairs = trainer.data.validation.pairs
    n_hidden = sum(pair.src.count(MASK) for pair in pairs)
    assert accuracy * n_hidden == pytest.approx(round(accuracy * n_hidden))
    assert whole * len(pairs) == pytest.approx(round(whole * len(pairs)))
    assert 0.2 < whole <= accuracy < 1
    loss, _, _ = trainer.objective.measure(Knows(trainer.objective), "validation")
    assert trainer.objective.loss_lower_bound() == pytest.approx(loss, abs=1e-4)
    _, src, _ = hidden_batch(trainer, n=5)
    read = torch.tensor([[2, 0], [1, 3], [0, 1], [3, 2], [1, 1]])
    trainer.model.eval()
    with torch.inference_mode():
        whole = trainer.model(src, src)
        few = trainer.model(src, src, read)
        with capture(trainer.model) as cache:
            watched = trainer.model(src, src, read)
    torch.testing.assert_close(few, tokens_at(whole, read))
    torch.testing.assert_close(watched, tokens_at(whole, read))
    torch.testing.assert_close(cache["output.logits"], whole)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_what_is_learned_is_what_the_whole_answer_says_of_the_chosen_words(smoothing):
    trainer = build(
        experiment(
            "encoder-only",
            "masked-words",
            model={"position": "rotary"},
            task={"n_train": 500, "size": 30},
            training={"label_smoothing": smoothing},
        )
    )
    model, objective, rows = trainer.model, trainer.objective, torch.arange(70)
    metrics = objective.loss_and_metrics(model, rows, torch.Generator().manual_seed(5))
    words = trainer.data.train.tgt[rows, 1:]
    words = words[:, : int((words != PAD).sum(1).max())]
    src, chosen = objective.hide(words, torch.Generator().manual_seed(5))
    logits = model(src, words)
    hidden = src == objective.mask_id
    expected = F.cross_entropy(logits[chosen], words[chosen], label_smoothing=smoothing)
    records = F.cross_entropy(logits[hidden], words[hidden])
    is_right = (logits.argmax(-1) == words) & hidden
    torch.testing.assert_close(metrics.loss, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(metrics.reported_loss, records, atol=1e-5, rtol=1e-5)
    assert int(metrics.n_correct) == int(is_right.sum())
    assert int(metrics.n_tokens) == int(hidden.sum())
    assert int(metrics.n_exact) == int((is_right == hidden).all(1).sum())
    for grads in zip(
        torch.autograd.grad(metrics.loss, trainer.parameters),
        torch.autograd.grad(expected, trainer.parameters),
        strict=True,
    ):
        torch.testing.assert_close(*grads, atol=1e-5, rtol=1e-4)


def test_a_short_training_comes_nearer_to_the_floor_and_reports_hidden_words_alone():
    short = experiment(
        "encoder-only",
        "masked-words",
        model={"d_model": 32, "n_heads": 4, "d_ff": 32, "position": "rotary"},
        task={"n_train": 2000, "n_validation": 200},
        training={"steps": 150, "batch_size": 64, "learning_rate": 0.01, "validate_every": 150},
    )
    events = list(train(build(short)))
    started = next(event for event in events if isinstance(event, Started))
    measured = [event for event in events if isinstance(event, Measured)]
    last = [event for event in events if isinstance(event, Step)][-1]
    assert measured[0].loss == pytest.approx(started.start_loss, rel=0.15)
    assert started.floor < measured[-1].loss < 0.6 * measured[0].loss
    assert last.loss > 0.5 * started.floor
