"""What in a run's model decides between two answers: patches and direct effects on one example.

torch is imported late.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfm_core.anatomy import stacks
from tfm_core.choices.config import CorpusTaskConfig, RecurrentConfig
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention.trained import cached_by_weights, model_of
from tfm_core.inspect.knockouts.head_paths import HeadPaths
from tfm_core.inspect.knockouts.parts import STACKS, SUBLAYERS, Part, heads_of, part_of
from tfm_core.inspect.knockouts.two_inputs import (
    AnswersAlike,
    TwoInputs,
    of_pictures,
    of_texts,
    positions_of,
    task_of,
    tokens_of,
    tokens_read,
)
from tfm_core.inspect.tables import Column, Columns, table
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Sentence, StudentError

if TYPE_CHECKING:
    import pandas as pd

    from tfm_core.data.text.task import TextTask
    from tfm_core.inspect.knockouts.patching import Floats
    from tfm_core.models.build import Model

LENS = Columns(
    depth=Column(N_("answer after")),
    value=Column(N_("probability"), ".5f", {"range": [-0.02, 1.04], "tickformat": ".0%"}),
)
EFFECTS = Columns(effect=Column(N_("difference of the logits"), "+.5f"))
Pair = tuple[str, str] | tuple[int, int]
"""Two texts, or the numbers of two of the run's pictures: the first input, and the changed one."""

_CANDIDATES = 12
_MOST_OF_PICTURES = 6e11
"""Products of weights, tokens and runs for one picture: about a minute."""
_QUICK = 2e10  # tokens times weights, some ten of which take a nanosecond


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """Two inputs, the two answers at the first place where they differ, and what decides.

    written: the answer before that place.
    tokens: by stack, the names of its positions. lens: depth, first, second: probabilities of both
    answers to the first input after each layer of the last stack. patches: by hook point, None
    where they would take too long. effects: by part, from the embedding to the biases; None where
    the answer is not linear.
    """

    step: int
    written: str
    answers: tuple[str, str]
    tokens: Mapping[str, tuple[str, ...]]
    patches: Mapping[str, Floats] | None
    lens: pd.DataFrame
    effects: Sequence[tuple[Part | None, float]] | None

    def streams(self) -> dict[str, tuple[Floats, list[Sentence]]]:
        """Return by stack the shares that its positions restore, (L + 1, T), and rows' names."""
        assert self.patches is not None
        by_stack: dict[str, list[Floats]] = {}
        for point, shares in self.patches.items():
            if not point.endswith(".merged"):
                by_stack.setdefault(point.split(".")[0], []).append(shares)
        streams = {}
        for stack, rows in by_stack.items():
            names = [N_("before {n}", n=n) for n in range(1, len(rows))]
            names.append(N_("after {n}", n=len(rows) - 1))
            streams[stack] = np.stack(rows)[:, : len(self.tokens[stack])], names
        return streams

    def heads(self) -> tuple[Floats, list[Part]]:
        """Return the share that each head restores, (attentions, H), and the attentions."""
        assert self.patches is not None
        found = {
            part_of(point.removesuffix(".merged")): shares
            for point, shares in self.patches.items()
            if point.endswith(".merged")
        }
        return np.stack(list(found.values())), list(found)

    def strongest_head(self) -> Part:
        """Return the head whose patch restores most."""
        shares, attentions = self.heads()
        row, head = divmod(int(np.abs(shares).argmax()), shares.shape[1])
        strongest: Part = replace(attentions[row], kind="head", head=head)
        return strongest

    def parts(self, most: int) -> pd.DataFrame:
        """Return part, from 0, name, effect, words of the strongest, and the sum of all others."""
        assert self.effects is not None
        (_none, embedded), *effects, (_none, biases) = self.effects
        parts = [(N_("embedding"), embedded), (N_("other biases"), biases)]
        for part, value in effects:
            assert part is not None
            assert part.layer is not None
            name = N_("layer {n}, feed-forward", n=part.layer + 1)
            if part.head is not None:
                words = SUBLAYERS[part.sublayer][1]
                name = N_(
                    "layer {n}, {sublayer} {head}",
                    n=part.layer + 1,
                    sublayer=words,
                    head=part.head + 1,
                )
            parts.append((name, value))
        parts.sort(key=lambda part: -abs(part[1]))
        others = parts[most:]
        if others:
            words = N_("{n} other parts, in sum", n=len(others))
            parts[most:] = [(words, sum(value for _, value in others))]
        rows = [(n, name, value, f"{value:+.2f}") for n, (name, value) in enumerate(parts)]
        return EFFECTS.table(table(rows, part=int, name=object, effect=float, words=str))


def attention_name(attention: Part) -> Sentence:
    """Return how a row of a map of heads is called."""
    return N_(
        "{stack} {n}, {sublayer}",
        stack=STACKS[attention.stack],
        n=(attention.layer or 0) + 1,
        sublayer=SUBLAYERS[attention.sublayer][1],
    )


def can_change(run: Run) -> bool:
    """Return whether a run's model has a residual stream, and an answer."""
    return not isinstance(run.experiment.model, RecurrentConfig) and (
        run.experiment.task.facts.answer != "vectors"
    )


def text_of(run: Run, index: int) -> str:
    """Return an example's text, as a person types it."""
    return task_of(run).join_src(tokens_read(run.probe().items[index]))


@cached_by_weights
def suggested(run: Run, text: str) -> str:
    """Return a text with one token changed so that the model answers differently; "" if none.

    The token is one of the run's examples at the same place, or another of the text. Cached.
    Raises ValueError, in a sentence, for a text that the model cannot read.
    """
    import torch

    from tfm_core.decoding import greedy
    from tfm_core.probe.items import continued

    task = task_of(run)
    tokens = tokens_of(task, text)
    model: Any = model_of(run)[0]
    others = _changed(tokens, [tokens_read(item) for item in run.probe().items])
    texts = [tokens, *(one for one in others if _can_be_typed(task, one))]
    config = run.experiment.task
    if isinstance(config, CorpusTaskConfig):
        prompts = torch.tensor([task.tgt_vocabulary.encode(text) for text in texts])
        with torch.no_grad():  # the next token of each prompt, if that differs
            begin = prompts.new_full((len(prompts), 1), model.bos_id)
            logits = model(prompts[:, :0], torch.cat([begin, prompts], 1))
            confidence, ids = logits[:, -1:].float().softmax(-1).max(-1)
        if not (ids != ids[:1]).any():
            ids, confidence = continued(model, config, prompts)
    else:
        src = torch.tensor([task.src_vocabulary.encode(text) for text in texts])
        written = greedy(model, src, max_len=config.n_answers)
        ids, confidence = written.ids, written.confidence
    differs = ids != ids[:1]
    if run.experiment.task.facts.answer == "blanks":  # what is not hidden is copied
        hidden = torch.tensor([[token == MASK for token in tokens]])
        differs = differs[:, : hidden.size(1)] & hidden
    first = differs.int().argmax(1, keepdim=True)  # the place of the first difference
    sure = confidence.gather(1, first) * confidence[:1].gather(1, first.T).T
    sure[~differs.any(1)] = -1.0
    best = int(sure.argmax())
    return task.join_src(texts[best]) if sure[best] > 0 else ""


@cached_by_weights
def other_picture(run: Run, index: int) -> int:
    """Return the first example after one that the model answers differently. Raises ValueError."""
    n = len(run.probe().items)
    for step in range(1, n):
        other = (index + step) % n
        try:
            of_pictures(run, model_of(run)[0], index, other)
        except AnswersAlike:
            continue
        return other
    raise StudentError("The model answers all pictures alike.")


def cost_of(run: Run, text: str | None = None) -> tuple[int, int, int]:
    """Return what patching a text or a picture takes: runs, tokens in each, and weights.

    Raises ValueError for a text that the model cannot read.
    """
    if text is not None:
        n_tokens = len(tokens_of(task_of(run), text))
    else:
        module = modules_by_kind(run.experiment)["patches"][0]
        n_tokens = len(axes(run.experiment, {}, module).query)
    n_places = sum(stack.n_layers + 1 for stack in stacks(run.experiment.model))
    n_weights = sum(weight.numel() for weight in model_of(run)[0].parameters())
    return n_places * n_tokens + len(heads_of(run.experiment)), n_tokens, n_weights


def is_slow(run: Run, text: str) -> bool:
    """Return whether that takes more than about two seconds. Raises ValueError."""
    return math.prod(cost_of(run, text)) > _QUICK


@cached_by_weights
def causes_of(run: Run, pair: Pair) -> Causes:
    """Return what decides between the answers to two inputs of one length in tokens. Cached.

    No picture is patched where that would take minutes. Raises ValueError, in a sentence, where
    texts differ in length or the answers do not.
    """
    from tfm_core.inspect.knockouts.patching import direct_effects, lens_of, patches_of

    model, step = model_of(run)
    two = _of_pair(run, model, pair)
    patches = effects = None
    if isinstance(pair[0], str) or math.prod(cost_of(run)) <= _MOST_OF_PICTURES:
        patches = patches_of(model, two.clean, two.changed, two.answers)
    with suppress(StudentError):
        effects = direct_effects(model, two.clean, two.answers)
    first, second = lens_of(model, two.clean, two.answers).T
    lens = LENS.table({"depth": range(len(first)), "first": first, "second": second})
    return Causes(step, two.written, two.words, positions_of(run, two), patches, lens, effects)


@cached_by_weights
def paths_of_pair(run: Run, pair: Pair, head: Part) -> HeadPaths:
    """Return how the effect of a head reaches the answer to the first of two inputs. Cached.

    Raises ValueError as ``causes_of``.
    """
    from tfm_core.inspect.knockouts.patching import paths_of

    model, _step = model_of(run)
    two = _of_pair(run, model, pair)
    total, direct, shares = paths_of(model, two.clean, two.changed, two.answers, head)
    through = sorted(shares.items(), key=lambda share: -abs(share[1]))
    return HeadPaths(two.words[0], total, direct, tuple(through))


def _of_pair(run: Run, model: Model, pair: Pair) -> TwoInputs:
    if isinstance(pair[0], str):
        return of_texts(run, model, *pair)
    return of_pictures(run, model, *pair)


def _can_be_typed(task: TextTask, tokens: tuple[str, ...]) -> bool:
    """Return whether a text is cut into the tokens that it was made of."""
    try:
        return tuple(task.tokenize(task.join_src(tokens))) == tokens
    except StudentError:
        return False


def _changed(tokens: Sequence[str], others: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return texts with one token of another place or text, those of one place far apart."""
    by_place = []
    for at, token in enumerate(tokens):
        there = dict.fromkeys([*(o[at] for o in others if len(o) > at), *tokens])
        by_place.append([] if token == MASK else [t for t in there if t not in (token, MASK)])
    rounds = itertools.zip_longest(*by_place)
    texts = [
        (*tokens[:at], other, *tokens[at + 1 :])
        for each in rounds
        for at, other in enumerate(each)
        if other is not None
    ]
    return texts[:_CANDIDATES]
