"""Teacher forcing beside free running: predictions after the truth, and after its own tokens.

After its first wrong token a free-running model reads what it never saw in training (exposure bias:
Bengio et al. 2015, "Scheduled Sampling"; Ranzato et al. 2016). torch is imported late.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from tfm_core.inspect.writing.source import Source, passed
from tfm_core.inspect.writing.steps import Writing


@dataclass(frozen=True, slots=True)
class TokenProbability:
    """A token and the probability that it had."""

    token: str
    chance: float


@dataclass(frozen=True, slots=True)
class ComparedToken:
    """One position: the truth with its probability, the prediction after it, and the free one.

    Each is None where its text has ended.
    """

    truth: TokenProbability | None
    taught: TokenProbability | None
    free: TokenProbability | None

    @property
    def is_taught_right(self) -> bool:
        """Return whether teacher forcing predicts the true token."""
        return (
            self.truth is not None
            and self.taught is not None
            and self.truth.token == self.taught.token
        )

    @property
    def is_free_right(self) -> bool:
        """Whether running free wrote the true token."""
        return (self.truth and self.truth.token) == (self.free and self.free.token)


@dataclass(frozen=True, slots=True)
class BesideTruth:
    """A text place by place, and the natural logarithm of the probability of both texts."""

    places: tuple[ComparedToken, ...]
    truth_score: float
    free_score: float

    @property
    def parts_at(self) -> int | None:
        """The first place, from 0, where running free leaves the truth; None for none."""
        wrong = (place for place, one in enumerate(self.places) if not one.is_free_right)
        return next(wrong, None)

    @property
    def n_taught_right(self) -> int:
        """Tokens that are right under teacher forcing."""
        return sum(place.is_taught_right for place in self.places)

    @property
    def n_free_right(self) -> int:
        """Return the number of true tokens at their place in the generated text."""
        return sum(place.truth is not None and place.is_free_right for place in self.places)

    @property
    def n_true(self) -> int:
        """Tokens of the truth, <eos> included."""
        return sum(place.truth is not None for place in self.places)


def beside_truth(writing: Writing) -> BesideTruth | None:
    """Return a text beside the truth; None if the truth is unknown."""
    import torch

    source = writing.source
    if source.truth is None:
        return None
    ids = _truth_ids(source)
    logs = passed(source, ids).logits.double().log_softmax(-1)
    own = logs.gather(1, torch.tensor(ids)[:, None])[:, 0]
    best = logs.max(-1)
    truth = [
        TokenProbability(source.vocabulary.token(id), float(log.exp()))
        for id, log in zip(ids, own, strict=True)
    ]
    taught = [
        TokenProbability(source.vocabulary.token(id), float(log.exp()))
        for id, log in zip(best.indices.tolist(), best.values, strict=True)
    ]
    free = [TokenProbability(token.own.token, token.own.chance) for token in writing.tokens]
    places = tuple(ComparedToken(*said) for said in zip_longest(truth, taught, free))
    return BesideTruth(places, float(own.sum()), writing.score)


def _truth_ids(source: Source) -> tuple[int, ...]:
    assert source.truth is not None
    ids = tuple(source.vocabulary.encode(source.truth))
    return (*ids, source.vocabulary.specials.eos)[: source.longest]
