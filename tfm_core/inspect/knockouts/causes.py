"""What in a run's model decides between two answers: patches and direct effects on one example.

Two inputs of one length are followed to the first place at which the model answers them
differently. torch is imported late.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfm_core.anatomy import stacks
from tfm_core.choices.config import CaptionTaskConfig, CorpusTaskConfig, RecurrentConfig
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention.trained import cached_by_weights, inputs_of, model_of
from tfm_core.inspect.knockouts.parts import (
    Part,
    heads_of,
    part_of,
    short_name,
)
from tfm_core.inspect.tables import Column, Columns, table
from tfm_core.probe.items import is_language
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Sentence, StudentError

if TYPE_CHECKING:
    import pandas as pd

    from tfm_core.data.text.task import TextTask
    from tfm_core.inspect.knockouts.engine import AnswerPair, Floats, Inputs
    from tfm_core.models.build import Model

LENS = Columns(
    depth=Column(N_("answer after")),
    value=Column(N_("probability"), ".5f", {"range": [-0.02, 1.04], "tickformat": ".0%"}),
)
EFFECTS = Columns(effect=Column(N_("logit difference"), "+.5f"))
Pair = tuple[str, str] | tuple[int, int]
"""Two texts, or the numbers of two of the run's pictures: the first input, and the changed one."""

MAX_TOKENS = 64
"""Each token of a text is patched before each layer."""
_SAME = N_("The model gives both inputs the same answer. Change another word.")
_CANDIDATES = 12
_MOST_OF_PICTURES = 6e11
"""Products of weights, tokens and runs for one picture: about a minute."""
_QUICK = 2e10  # tokens times weights, some ten of which take a nanosecond
_LEAST = 0.005  # less is written as 0.00


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
        return part_of(attentions[row].module, head)

    def parts(self, most: int) -> pd.DataFrame:
        """Return the effect of each part, in the columns of ``_strongest``."""
        assert self.effects is not None
        (_none, embedded), *effects, (_none, biases) = self.effects
        parts = [(short_name(part), value) for part, value in effects if part is not None]
        ends = (N_("embedding"), embedded), (N_("other biases"), biases)
        return EFFECTS.table(_strongest([*ends, *parts], most))


class HeadPaths(NamedTuple):
    """Shares of the clean answer that a head restores in a changed input: 1 is all of it.

    total: along all paths. direct: to the logits alone. through: through each later part first.
    answer: the token or class.
    """

    answer: str
    total: float
    direct: float
    through: Mapping[Part, float]

    @property
    def in_sum(self) -> float:
        """What all later parts restore, each alone."""
        return sum(self.through.values())

    @property
    def together(self) -> float:
        """What the paths add only together: the total less all of them."""
        return self.total - self.direct - self.in_sum

    def parts(self, most: int) -> pd.DataFrame:
        """Return the share that each path restores alone, in the columns of ``_strongest``."""
        later = ((short_name(part), share) for part, share in self.through.items())
        found = _strongest([(N_("directly"), self.direct), *later], most)
        low, high = min(0.0, found["effect"].min()), max(1.0, found["effect"].max())
        title = N_("share of the answer restored")
        return Columns(effect=Column(title, "+.5f", {"range": (low, 1.3 * high)})).table(found)


def _strongest(parts: list[tuple[Sentence, float]], most: int) -> pd.DataFrame:
    """Return part, from 0, name, effect, words of the strongest, and the sum of all others."""
    parts.sort(key=lambda part: -abs(part[1]))
    most = min(most, max(1, sum(abs(value) >= _LEAST for _name, value in parts)))
    others = parts[most:]
    if others:
        words = N_("{n} other parts together", n=len(others))
        parts[most:] = [(words, sum(value for _, value in others))]
    rows = [(n, name, value, f"{value:+z.2f}") for n, (name, value) in enumerate(parts)]
    return table(rows, part=int, name=object, effect=float, words=str)


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
    raise StudentError("The model gives all pictures the same answer.")


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
    from tfm_core.inspect.knockouts.engine import direct_effects, lens_of, patches_of

    model, step = model_of(run)
    two = _of_pair(run, model, pair)
    patches = effects = None
    if isinstance(pair[0], str) or math.prod(cost_of(run)) <= _MOST_OF_PICTURES:
        patches = patches_of(model, two.clean, two.changed, two.answers)
    with suppress(StudentError):
        effects = direct_effects(model, two.clean, two.answers)
    first, second = lens_of(model, two.clean, two.answers).T
    lens = LENS.table({"depth": range(len(first)), "first": first, "second": second})
    tokens: dict[str, tuple[str, ...]] = {}
    for module, *_others in modules_by_kind(run.experiment).values():
        if module.endswith("self_attention"):
            tokens[module.split(".")[0]] = axes(run.experiment, two.item, module).query
    return Causes(step, two.written, two.words, tokens, patches, lens, effects)


@cached_by_weights
def paths_of_pair(run: Run, pair: Pair, head: Part) -> HeadPaths:
    """Return how the effect of a head reaches the answer to the first of two inputs. Cached.

    Raises ValueError as ``causes_of``.
    """
    from tfm_core.inspect.knockouts.engine import paths_of

    model, _step = model_of(run)
    two = _of_pair(run, model, pair)
    return HeadPaths(two.words[0], *paths_of(model, two.clean, two.changed, two.answers, head))


def _of_pair(run: Run, model: Model, pair: Pair) -> TwoInputs:
    if isinstance(pair[0], str):
        return of_texts(run, model, *pair)
    return of_pictures(run, model, *pair)


class AnswersAlike(StudentError):
    """The model answers two inputs alike, so nothing decides between the answers."""


@dataclass(frozen=True, slots=True, eq=False)
class TwoInputs:
    """Two inputs and their answers. item: of the first, with what is written before the answer."""

    clean: Inputs
    changed: Inputs
    answers: AnswerPair
    words: tuple[str, str]
    written: str
    item: Mapping[str, Any]


def of_texts(run: Run, model: Model, text: str, changed: str) -> TwoInputs:
    """Return two texts up to the first place at which the answers differ. Raises StudentError."""
    import torch

    from tfm_core.inspect.knockouts.engine import AnswerPair
    from tfm_core.models.text import EncoderOnly

    task = task_of(run)
    tokens, others = tokens_of(task, text), tokens_of(task, changed)
    if len(others) != len(tokens):
        raise StudentError(
            "The changed input has {n} tokens. Like the first, it needs {expected}.",
            n=len(others),
            expected=len(tokens),
        )
    is_text = run.experiment.task.facts.answer == "text"
    words = task.tgt_vocabulary
    begin = words.specials.bos

    def inputs(read: Sequence[str], written: Sequence[int]) -> Inputs:
        if is_text:
            return torch.empty(1, 0, dtype=torch.int64), torch.tensor(
                [[begin, *words.encode(read), *written]]
            )
        return torch.tensor([task.src_vocabulary.encode(read)]), torch.tensor([[begin, *written]])

    if isinstance(model, EncoderOnly):
        n_answers = run.experiment.task.n_answers
        slots = [begin] * (n_answers - 1 if model.pool is None else 0)
        pair = inputs(tokens, slots), inputs(others, slots)
        position, ids = _first_place(model, *pair)
        is_sequence = run.experiment.task.facts.answer == "sequence"
        shown = {"src": tokens, "tgt": ("",) * (n_answers - 1) if is_sequence else ()}
        before = ""
    else:
        never = list(words.specials.unwritten)
        found = _first_token(model, lambda ids: (inputs(tokens, ids), inputs(others, ids)), never)
        pair, ids, written_ids = found
        position = -1
        written = tuple(words.decode(list(written_ids)))
        shown = {"src": () if is_text else tokens, "tgt": (*(tokens if is_text else ()), *written)}
        before = task.join_tgt(written)
    answers = words.token(ids[0]), words.token(ids[1])
    return TwoInputs(*pair, AnswerPair(position, *ids), answers, before, shown)


def of_pictures(run: Run, model: Model, index: int, other_index: int) -> TwoInputs:
    """Return two of the run's pictures, in the same way. Raises StudentError."""
    import torch

    from tfm_core.data.caption_words import join, vocabulary
    from tfm_core.inspect.knockouts.engine import AnswerPair
    from tfm_core.models.pictures import VisionTransformer

    experiment = run.experiment
    probe = run.probe()
    assert probe.images is not None
    item = probe.items[index]
    pictures = probe.images[index], probe.images[other_index]
    clean, other = (inputs_of(run, item, picture)[:1] for picture in pictures)
    if isinstance(model, VisionTransformer):
        with torch.inference_mode():
            first, second = (int(model(*images)[0].argmax()) for images in (clean, other))
        if first == second:
            raise AnswersAlike(
                N_("The model gives both pictures the same answer. Choose another one.")
            )
        names = experiment.task.class_names
        shown: dict[str, tuple[str, ...]] = {"src": (), "tgt": ()}
        words = str(names[first]), str(names[second])
        return TwoInputs(clean, other, AnswerPair(None, first, second), words, "", shown)
    config = experiment.task_as(CaptionTaskConfig)
    known = vocabulary(config)
    begin = known.specials.bos

    def inputs(ids: Sequence[int]) -> tuple[Inputs, Inputs]:
        written = torch.tensor([[begin, *ids]])
        return (*clean, written), (*other, written)

    pair, ids, written_ids = _first_token(model, inputs, [])
    written = tuple(known.decode(list(written_ids)))
    words = known.token(ids[0]), known.token(ids[1])
    shown = {"src": item["src"], "tgt": written}
    return TwoInputs(*pair, AnswerPair(-1, *ids), words, join(written, config), shown)


def _first_place(model: Any, clean: Inputs, changed: Inputs) -> tuple[int, tuple[int, int]]:
    """Return the first position that is answered differently, and both answers."""
    import torch

    with torch.inference_mode():
        first, second = (model(*inputs)[0].argmax(-1) for inputs in (clean, changed))
    places = first != second
    if model.mask_id:  # what is not hidden is no answer
        hidden = clean[0][0] == model.mask_id
        places = places[: len(hidden)] & hidden[: len(places)]
    if not places.any():
        raise AnswersAlike(_SAME)
    at = int(places.nonzero()[0, 0])
    return at, (int(first[at]), int(second[at]))


def _first_token(
    model: Any,
    inputs: Callable[[Sequence[int]], tuple[Inputs, Inputs]],
    never: list[int],
) -> tuple[tuple[Inputs, Inputs], tuple[int, int], Sequence[int]]:
    """Write both answers greedily until they differ: the inputs then, both ids, what is written."""
    import torch

    written: list[int] = []
    for _ in range(MAX_TOKENS):
        pair = inputs(written)
        with torch.no_grad():
            rows = [model(*each)[0, -1] for each in pair]
        for row in rows:
            row[never] = -torch.inf
        first, second = (int(row.argmax()) for row in rows)
        if first != second:
            return pair, (first, second), written
        if first == model.eos_id:
            break
        written.append(first)
    raise AnswersAlike(_SAME)


def task_of(run: Run) -> TextTask:
    """Return the task of a run that reads texts."""
    from tfm_core.data.tasks import text_task

    return text_task(run.experiment.task)


def tokens_of(task: TextTask, text: str) -> tuple[str, ...]:
    """Return the tokens of a text. Raises StudentError for more than MAX_TOKENS."""
    tokens = task.tokenize(text)
    if len(tokens) > MAX_TOKENS:
        raise StudentError(
            "The text has {n} tokens; the limit is {most}.", n=len(tokens), most=MAX_TOKENS
        )
    return tokens


def tokens_read(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tokens that a model reads before it answers."""
    return tuple(item["tgt"][: item["prompt"]] if is_language(item) else item["src"])


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
