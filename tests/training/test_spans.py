"""The bounds of span corruption are what the reader who knows reaches."""

import math

import pytest
import torch
from torch import nn

from tests.training.test_loop import experiment
from tfm_core.data.text.span_corruption import posterior
from tfm_core.data.vocabulary import EOS, PAD
from tfm_core.training.events import Started
from tfm_core.training.loop import build, train


@pytest.fixture(scope="module")
def trainer():
    task = {"n_train": 1000, "n_validation": 60}
    return build(experiment("encoder-decoder", "span-corruption", task=task))


class Knows(nn.Module):
    """Says the true chances of every next token, given the source and the target so far."""

    def __init__(self, objective):
        super().__init__()
        self.objective = objective

    def forward(self, src, tgt_in):
        task, n_draws = self.objective.data.task, self.objective.data.n_draws
        vocabulary = task.src_vocabulary
        logits = torch.full((*tgt_in.shape, len(vocabulary)), -30.0)
        for row, (ids, written) in enumerate(zip(src.tolist(), tgt_in.tolist(), strict=True)):
            tokens = [vocabulary.token(i) for i in ids if i != PAD]
            answers = posterior(tokens, task.percent, n_draws)
            ways = {(*vocabulary.encode(words), EOS): p for words, p in answers.items()}
            for at in range(len(written)):
                so_far = tuple(written[1 : at + 1])
                shares = {}
                for way, p in ways.items():
                    if way[:at] == so_far and at < len(way):
                        shares[way[at]] = shares.get(way[at], 0.0) + p
                for token, share in shares.items():
                    logits[row, at, token] = math.log(share / sum(shares.values()))
        return logits


def test_the_bounds_of_the_reader_who_knows_are_told_when_training_starts(trainer):
    objective = trainer.objective
    loss, accuracy, whole = objective.measure(Knows(objective), "validation")
    assert objective.loss_lower_bound() == pytest.approx(loss, abs=1e-4)
    expected = objective.accuracy_upper_bound()
    assert accuracy == pytest.approx(expected, abs=5 * math.sqrt(0.25 / (60 * 4)))
    assert 0 < whole < accuracy < 1
    started = next(event for event in train(trainer) if isinstance(event, Started))
    assert started.floor == trainer.objective.loss_lower_bound() > 0
    assert started.chance < started.ceiling == trainer.objective.accuracy_upper_bound() < 1
