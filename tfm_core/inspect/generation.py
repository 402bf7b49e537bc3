"""Text generation step by step: each token, its alternatives, the attention, and beam search.

A beam drops unlikely beginnings; a wider beam, greedy decoding or a sample may find a likelier
text. torch is imported late.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.generation_source import Ids, Source, read_written
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.tables import Column, Columns, table
from tfm_core.sentences import N_, StudentError, percent

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from tfm_core.decoding import Beam, SamplingConfig


N_BEST, N_NEXT = 8, 12


def in_nats(score: float) -> str:
    """Return a sum of ln p with two decimals, more near 0."""
    return f"{score:.2f}" if abs(score) >= 0.1 or not score else f"{score:.1g}"


Forced = Mapping[int, int]
"""Tokens that the reader chose: place after the prompt, from 0 -> id."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible token: its probability in the model, and after temperature, top-k and top-p."""

    id: int
    token: str
    chance: float
    drawn: float


@dataclass(frozen=True, slots=True)
class WrittenToken:
    """A token of a text with its probability and the alternatives.

    rank: from 1. best: the likeliest candidates, and the written one. n_left: tokens that can be
    drawn. is_forced: chosen by the reader. is_given: copied from before.
    """

    own: Candidate
    rank: int
    best: tuple[Candidate, ...]
    n_left: int
    is_forced: bool = False
    is_given: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Writing:
    """A text that a model wrote: T tokens, <eos> last if it ended.

    attention: (L, H, T, K) over ``keys``, of which the first ``n_read`` were there before.
    """

    source: Source
    tokens: tuple[WrittenToken, ...]
    attention: npt.NDArray[np.float32]
    keys: tuple[str, ...]
    n_read: int

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens as they stand."""
        return tuple(token.own.token for token in self.tokens)

    @property
    def text(self) -> str:
        """The text as a person reads it."""
        return self.source.text(self.words)

    @property
    def score(self) -> float:
        """The natural logarithm of the text's probability."""
        return sum(
            math.log(max(token.own.chance, 1e-300)) for token in self.tokens if not token.is_given
        )


def write(
    source: Source,
    sampling: SamplingConfig,
    *,
    seed: int = 0,
    n: int | None = None,
    forced: Forced | None = None,
) -> Writing:
    """Write until <eos>, or at most ``n`` tokens, with some tokens forced by the reader.

    Raises StudentError for a forced token that is unknown or never written.
    """
    forced = forced or {}
    for id in forced.values():
        if id >= len(source.vocabulary) or id in source.never:
            raise StudentError(
                N_("Token {id} can't be written: this model writes tokens up to {most}."),
                id=id,
                most=len(source.vocabulary) - 1,
            )
    if source.is_at_once:
        return _at_once(source, forced)
    ids = _written(source, sampling, seed, n, forced)
    logits, attention, keys, n_read = read_written(source, ids)
    tokens = _tokens(source, logits, ids, sampling, forced)
    return Writing(source, tokens, attention, keys, n_read)


def _written(
    source: Source, sampling: SamplingConfig, seed: int, n: int | None, forced: Forced
) -> Ids:
    from tfm_core.decoding import Constraints, sampled_steps

    before = len(source.prompt)
    ids: list[int] = []
    for step in sampled_steps(
        source.writer,
        source.src,
        source.prompt,
        max_len=before + min(source.longest, n or source.longest),
        sampling=sampling,
        seeds=[seed],
        context=source.context,
        constraints=Constraints(source.never, {before + place: id for place, id in forced.items()}),
    ):
        ids = step.ids[0, before:].tolist()
    eos = source.vocabulary.specials.eos
    return tuple(ids[: ids.index(eos) + 1] if eos in ids else ids)


def _tokens(
    source: Source, logits: Tensor, ids: Ids, sampling: SamplingConfig, forced: Forced
) -> tuple[WrittenToken, ...]:
    from tfm_core.decoding import filtered_probs

    chances, drawn = logits.softmax(-1), filtered_probs(logits, sampling)
    tokens, row = [], source.vocabulary.row(ids)
    for place, (id, before, after) in enumerate(zip(ids, chances, drawn, strict=True)):

        def candidate(token: int, before: Tensor = before, after: Tensor = after) -> Candidate:
            word = source.vocabulary.token(token)
            return Candidate(token, word, float(before[token]), float(after[token]))

        order = before.argsort(descending=True, stable=True).tolist()
        most = [token for token in order[:N_BEST] if token not in source.never]
        shown = most if id in most else [*most[: N_BEST - 1], id]
        tokens.append(
            WrittenToken(
                own=replace(candidate(id), token=row[place]),
                rank=order.index(id) + 1,
                best=tuple(map(candidate, shown)),
                n_left=int((after > 0).sum()),
                is_forced=forced.get(place) == id,
            )
        )
    return tuple(tokens)


def _at_once(source: Source, forced: Forced) -> Writing:
    """Write all positions in one pass; a forced token changes only its own."""
    from tfm_core.decoding import SamplingConfig

    given: dict[int, int] = {}
    mask_id = int(getattr(source.model, "mask_id", 0))
    n = source.longest
    if mask_id:
        n = len(source.read)
        places = enumerate(source.src[0].tolist())
        given = {place: id for place, id in places if id != mask_id}
    eos = source.vocabulary.specials.eos
    logits, attention, keys, n_read = read_written(source, (eos,) * n)
    ids = [
        given.get(place, forced.get(place, id))
        for place, id in enumerate(logits.argmax(-1).tolist())
    ]
    if not mask_id and eos in ids:
        ids = ids[: ids.index(eos) + 1]
    tokens = _tokens(source, logits[: len(ids)], tuple(ids), SamplingConfig(0), forced)
    marked = tuple(
        replace(token, is_given=True, is_forced=False) if place in given else token
        for place, token in enumerate(tokens)
    )
    return Writing(source, marked, attention[:, :, : len(ids)], keys, n_read)


NEXT = Columns(
    place=Column(N_("next token")),
    value=Column(
        N_("probability"), ".5f", {"rangemode": "tozero", "tickformat": ".2~%", "nticks": 6}
    ),
)


def next_token(
    source: Source, ids: Ids, sampling: SamplingConfig
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the likeliest tokens that may follow a prompt and ids, and facts of all that may.

    place, from 0; token; before, after: probabilities without and with temperature, top-k and
    top-p. The facts: left: tokens of all that can still be drawn; before, after: perplexity,
    exp(entropy).
    """
    import pandas as pd
    import torch

    from tfm_core.decoding import filtered_probs, next_logits

    whole = (*source.prompt, *ids)
    row = torch.tensor([whole], dtype=torch.int64).reshape(1, len(whole))
    with torch.inference_mode():
        logits = next_logits(source.writer, source.src, row, source.context)[0]
        logits[list(source.never)] = -torch.inf
        before, after = logits.softmax(-1), filtered_probs(logits, sampling)
    best = before.topk(min(N_NEXT, len(before)))
    vocabulary = source.vocabulary
    tokens = pd.Series([vocabulary.token(i) for i in best.indices.tolist()], dtype=object)
    shares = {"before": best.values.numpy(), "after": after[best.indices].numpy()}
    return NEXT.table({"place": range(len(tokens)), "token": tokens, **shares}), {
        "left": int((after > 0).sum()),
        "all": len(before) - len(source.never),
        "before": _perplexity(before.numpy()),
        "after": _perplexity(after.numpy()),
    }


def _perplexity(chances: npt.NDArray[np.float32]) -> float:
    real = chances[chances > 0].astype(np.float64)
    return float(np.exp(-(real * np.log(real)).sum()))


WAYS = ("truth", "taught", "free")
"""The true text, what is predicted after true tokens, and what running free wrote."""


def compare_with_truth(writing: Writing) -> tuple[pd.DataFrame, float] | None:
    """Return a text beside the truth, place by place; None if the truth is unknown.

    After its first wrong token a free-running model reads what it never saw in training (exposure
    bias: Bengio et al. 2015, "Scheduled Sampling"; Ranzato et al. 2016).

    By WAYS the tokens, None where a text has ended, their probabilities (``truth_chance``), and
    whether they are the true ones (``free_right``). And the logarithm of the truth's probability.
    """
    import torch

    source = writing.source
    if source.truth is None:
        return None
    words = source.vocabulary
    ids = (*words.encode(source.truth), words.specials.eos)[: source.longest]
    logs = read_written(source, ids)[0].double().log_softmax(-1)
    own, best = logs.gather(1, torch.tensor(ids)[:, None])[:, 0], logs.max(-1)
    truth = [(words.token(id), chance) for id, chance in zip(ids, own.exp().tolist(), strict=True)]
    taught = [
        (words.token(id), chance)
        for id, chance in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
    ]
    free = [(token.own.token, token.own.chance) for token in writing.tokens]
    rows = [
        (a, b, c, p, q, r, a == b, a == c)
        for (a, p), (b, q), (c, r) in zip_longest(truth, taught, free, fillvalue=(None, math.nan))
    ]
    tokens, chances = dict.fromkeys(WAYS, object), {f"{way}_chance": float for way in WAYS}
    return table(rows, **tokens, **chances, taught_right=bool, free_right=bool), float(own.sum())


def first_error(places: pd.DataFrame) -> int | None:
    """Return the first place, from 0, where running free leaves the truth; None for none."""
    wrong = np.flatnonzero(~places["free_right"])
    return int(wrong[0]) if len(wrong) else None


WIDEST = 64
N_SAMPLES = 8
MAX_TOKENS = 60_000
"""Tokens that the wider search may read, to limit its time."""

FoundBy = Literal["wider", "greedy", "sample"]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A text of a beam: its tokens, the prompt first, and its log-probability.

    n_written: tokens after the prompt. ranking: score over length penalty. parent: its place
    before.
    """

    tokens: tuple[str, ...]
    score: float
    is_done: bool
    n_written: int
    ranking: float
    parent: int = 0


@dataclass(frozen=True, slots=True)
class BeamSettings:
    """The beam width, the most tokens to write, and the length penalty."""

    width: int
    n: int
    alpha: float = 0.0


@dataclass(frozen=True, slots=True)
class BeamComparison:
    """The beams after each token, best first, and what other ways found.

    wider: the width that found ``wide``. samples: likeliest first.
    """

    settings: BeamSettings
    wider: int
    steps: list[list[Hypothesis]]
    greedy: Hypothesis
    wide: Hypothesis
    samples: tuple[Hypothesis, ...]

    @property
    def best(self) -> Hypothesis:
        """The best text of the beam."""
        return self.steps[-1][0]

    @property
    def others(self) -> list[tuple[FoundBy, Hypothesis]]:
        """What the other ways found, the best first; of equals the wider beam's."""
        found: list[tuple[FoundBy, Hypothesis]] = [("wider", self.wide), ("greedy", self.greedy)]
        found += [("sample", sample) for sample in self.samples]
        return sorted(found, key=lambda one: -round(one[1].ranking, 6))  # stable

    @property
    def is_missed(self) -> bool:
        """Whether another way found a text that the beam would have ranked before its best."""
        _found_by, text = self.others[0]
        return text.tokens != self.best.tokens and text.ranking > self.best.ranking + 1e-6

    @property
    def times_missed(self) -> float:
        """How many times as likely the best other text is; 1 where nothing was missed."""
        if not self.is_missed:
            return 1.0
        return math.exp(self.others[0][1].score - self.best.score)

    @property
    def fell_out_at(self) -> int | None:
        """The step, from 0, at which the missed text left the beam; None where it never did."""
        if not self.is_missed:
            return None
        tokens = self.others[0][1].tokens
        for step, beams in enumerate(self.steps):
            if not any(tokens[: len(beam.tokens)] == beam.tokens for beam in beams):
                return step
        return None

    @property
    def tree(self) -> pd.DataFrame:
        """Return a row for every text of the beam: a node of the tree, at its step and place.

        text: its tokens; parent: its place at the step before; is_new: its last token was written
        at this step; lives: it leads to a text of the final beam.
        """
        lives: list[set[int]] = [set() for _ in self.steps]
        lives[-1] = set(range(len(self.steps[-1])))
        for step in range(len(self.steps) - 1, 0, -1):
            lives[step - 1] = {self.steps[step][place].parent for place in lives[step]}
        rows = [
            (
                *(step, place, beam.parent, beam.tokens, beam.score, beam.is_done),
                not step or not self.steps[step - 1][beam.parent].is_done,
                place in lives[step],
            )
            for step, beams in enumerate(self.steps)
            for place, beam in enumerate(beams)
        ]
        columns = {"step": int, "place": int, "parent": int, "text": object, "score": float}
        return table(rows, **columns, is_done=bool, is_new=bool, lives=bool)


def wider_than(width: int, n: int) -> int:
    """Return the width to compare with, for ``n`` tokens: up to WIDEST, twice as wide at least."""
    affordable = MAX_TOKENS // (n * (n + 1) // 2)
    return max(2 * width, min(WIDEST, affordable))


def compare_beams(
    source: Source, settings: BeamSettings, forced: Forced | None = None
) -> BeamComparison | None:
    """Search with a beam, and in other ways, for at most ``settings.n`` tokens.

    forced: see ``steps.write``. None if the prompt has ended. Raises StudentError for a model that
    writes all at once.
    """
    n = min(settings.n, source.longest)
    settings = BeamSettings(settings.width, n, settings.alpha)
    steps = search_beams(source, settings, forced)
    if not steps:
        return None
    wider = wider_than(settings.width, n)
    greedy = search_beams(source, BeamSettings(1, n, settings.alpha), forced)[-1][0]
    wide = search_beams(source, BeamSettings(wider, n, settings.alpha), forced)[-1][0]
    samples = _samples(source, settings, forced)
    return BeamComparison(settings, wider, steps, greedy, wide, samples)


def search_beams(
    source: Source, settings: BeamSettings, forced: Forced | None = None
) -> list[list[Hypothesis]]:
    """Return the beams after each token, best first; width 1 is greedy writing."""
    from tfm_core.decoding import Constraints, beam_steps

    before = len(source.prompt)
    steps = beam_steps(
        source.writer,
        source.src,
        source.prompt,
        max_len=before + settings.n,
        width=settings.width,
        alpha=settings.alpha,
        context=source.context,
        constraints=Constraints(source.never, _placed(source, forced)),
    )
    return [_hypotheses(source, beams) for beams in steps]


def _hypotheses(source: Source, beams: Iterable[Beam]) -> list[Hypothesis]:
    before = len(source.prompt)
    return [
        Hypothesis(
            source.tokens_of(beam.ids),
            beam.score,
            beam.is_done,
            len(beam.ids) - before,
            beam.ranking,
            beam.parent,
        )
        for beam in beams
    ]


def _samples(
    source: Source, settings: BeamSettings, forced: Forced | None
) -> tuple[Hypothesis, ...]:
    """Sample texts, and score them like a beam's."""
    from tfm_core.decoding import Constraints, length_penalty, sampled_steps

    before, ids = len(source.prompt), [list[int]() for _ in range(N_SAMPLES)]
    eos = source.vocabulary.specials.eos
    scores = [0.0] * N_SAMPLES
    for step in sampled_steps(
        source.writer,
        source.src,
        source.prompt,
        max_len=before + settings.n,
        seeds=range(N_SAMPLES),
        context=source.context,
        constraints=Constraints(source.never, _placed(source, forced)),
    ):
        for row, (text, chances) in enumerate(zip(step.ids.tolist(), step.before, strict=True)):
            if eos not in ids[row]:
                ids[row].append(text[-1])
                scores[row] += math.log(max(float(chances[text[-1]]), 1e-300))
    texts = [
        Hypothesis(
            source.tokens_of((*source.prompt, *text)),
            score,
            eos in text,
            len(text),
            score / length_penalty(len(text), settings.alpha),
        )
        for text, score in zip(ids, scores, strict=True)
    ]
    return tuple(sorted(texts, key=lambda text: -text.ranking))


def _placed(source: Source, forced: Forced | None) -> dict[int, int]:
    return {len(source.prompt) + place: id for place, id in (forced or {}).items()}


def about_temperature(now: pd.DataFrame, hotter: pd.DataFrame) -> Question:
    """Ask what more temperature does to the likeliest token's share; both of ``next_token``."""
    one, other = float(now["after"][0]), float(hotter["after"][0])
    rises, same, falls = N_("It rises"), N_("It stays the same"), N_("It falls")
    answer = same if np.isclose(one, other, atol=5e-4) else rises if other > one else falls
    token = now["token"][0].strip() or "␣"
    return choice_question(
        N_("At temperature 2, what happens to the probability of “{token}”?", token=token),
        answer,
        {
            rises: N_(
                "Dividing the logits by 2 brings them closer together, so the "
                "likeliest token loses."
            ),
            same: N_(
                "Temperature divides the logits before the softmax, so the probabilities change."
            ),
            falls: N_("Here no other token can be drawn."),
        },
        N_("It goes from {one} to {other}.", one=percent(one), other=percent(other)),
    )
