"""What a model writes about: a sentence, a picture, or a text to continue.

Every family has one interface: decoders with a source, decoder-only models, captioners, and
encoder-only models, which write all positions at once. torch is imported late.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import CaptionTaskConfig, CorpusTaskConfig, Experiment
from tfm_core.data.text.nearest import sampled_sentences
from tfm_core.data.text.task import TextTask
from tfm_core.data.vocabulary import token_labels
from tfm_core.inspect.attention.trained import check_context, data_of, inputs_of, model_of_step
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from tfm_core.data.vocabulary import Vocabulary
    from tfm_core.decoding import Writes


Ids = tuple[int, ...]
Words = tuple[str, ...]
_KINDS = ("cross", "picture", "sequence", "text", "slots", "blanks")
"""Kinds of attention in which a row writes a token; a model has one of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """What one model writes from.

    src: (1, S) ids, (1, 0) for only a prompt, or a picture (1, C, H, W). prompt: ids after <bos>.
    read: the tokens of src. picture: uint8 (C, height, width), if read. longest: tokens to write at
    most, <eos> included. never: ids that are not written. truth: the right tokens, if known.
    context: of ``tfm_core.decoding``.
    """

    experiment: Experiment
    model: nn.Module
    step: int
    src: Tensor
    vocabulary: Vocabulary
    longest: int
    join: Callable[[Sequence[str]], str]
    read: tuple[str, ...] = ()
    prompt: Ids = ()
    picture: npt.NDArray[Any] | None = None
    truth: tuple[str, ...] | None = None
    context: int = 0

    @property
    def mark(self) -> str:
        """What tells this source from another one of the same run."""
        picture = b"" if self.picture is None else self.picture.tobytes()
        return f"{self.step} {self.read} {self.prompt} {zlib.crc32(picture)}"

    @property
    def is_at_once(self) -> bool:
        """Whether all positions are written at once, so that no token waits for another."""
        return self.experiment.model.family == "encoder-only"

    @property
    def never(self) -> Ids:
        """Ids that no text holds: padding, begin and unknown."""
        return () if self.is_at_once else self.vocabulary.specials.unwritten

    @property
    def writer(self) -> Writes:
        """The model, where it writes word by word."""
        assert not self.is_at_once
        return cast("Writes", self.model)

    def tokens_of(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Return ids as tokens up to the end of the text, with <eos> where it is."""
        eos = self.vocabulary.specials.eos
        end = ids.index(eos) + 1 if eos in ids else len(ids)
        return tuple(self.vocabulary.token(id) for id in ids[:end])

    def text(self, tokens: Sequence[str]) -> str:
        """Return tokens as a person reads them, without <eos>."""
        eos = self.vocabulary.specials.eos
        end = None if eos < 0 else self.vocabulary.token(eos)
        return self.join([token for token in tokens if token != end])


def can_write(experiment: Experiment) -> bool:
    """Return whether a model of the experiment writes words, not a label or a vector."""
    return experiment.task.facts.answer not in ("label", "vectors")


def source_of(run: Run, text: str, step: int | None = None) -> Source:
    """Return what a model writes from: a sentence, or a text to continue, maybe empty.

    step: of the weights; None is the last checkpoint.
    Raises StudentError for unknown words, a wrong length, another task, or no checkpoint.
    """
    import torch

    from tfm_core.data.tasks import text_task

    why = N_("This run does not turn sentences into text. Choose one that does.")
    config = run.experiment.task
    if config.picture_shape is not None or not can_write(run.experiment):
        raise StudentError(why)
    task = text_task(config)
    tokens = task.tokenize(text) if text.strip() or config.has_source else ()
    if not config.has_source:
        return continuing(run, tuple(task.tgt_vocabulary.encode(tokens)), step=step)
    model, step = model_of_step(run, step)
    return Source(
        experiment=run.experiment,
        model=model,
        step=step,
        src=torch.tensor([task.src_vocabulary.encode(tokens)]),
        vocabulary=task.tgt_vocabulary,
        longest=config.n_answers,
        join=task.join_tgt,
        read=tuple(tokens),
        truth=task.solve(tokens),
    )


def continuing(run: Run, prompt: Ids, step: int | None = None) -> Source:
    """Return what a language model writes from, up to its context: the ids of a prompt.

    step: of the weights; None is the last checkpoint. Raises StudentError for a prompt that fills
    the context.
    """
    import torch

    from tfm_core.data.tasks import corpus_task

    config = run.experiment.task_as(CorpusTaskConfig)
    task = corpus_task(config)
    model, step = model_of_step(run, step)
    check_context(config, len(prompt))
    return Source(
        experiment=run.experiment,
        model=model,
        step=step,
        src=torch.empty(1, 0, dtype=torch.int64),
        vocabulary=task.tgt_vocabulary,
        longest=config.max_tgt_len + 1 - len(prompt),
        join=task.join_tgt,
        prompt=prompt,
        context=config.max_tgt_len + 1,
    )


def picture_source(
    run: Run, picture: npt.NDArray[Any], truth: Words, step: int | None = None
) -> Source:
    """Return what a captioner writes from: a picture uint8 (1, size, size). Raises StudentError.

    truth: its right words. step: of the weights; None is the last checkpoint.
    """
    from tfm_core.data.caption_words import join, longest
    from tfm_core.data.captions import CaptionData
    from tfm_core.data.moving import data_as

    config = run.experiment.task_as(
        CaptionTaskConfig, N_("This run does not describe pictures. Choose one that does.")
    )
    model, step = model_of_step(run, step)
    data = data_as(data_of(run.experiment), CaptionData)
    images, _tgt = inputs_of(run, {"tgt": ()}, picture)
    return Source(
        experiment=run.experiment,
        model=model,
        step=step,
        src=images,
        vocabulary=data.vocabulary,
        longest=longest(config) + 1,
        join=lambda tokens: join(tokens, config),
        picture=picture,
        truth=truth,
    )


def read_written(
    source: Source, ids: Ids
) -> tuple[Tensor, npt.NDArray[np.float32], tuple[str, ...], int]:
    """Read a text of T tokens once and return the predictions at each token, after those in ids.

    Logits (T, V), -inf for what is never written; attention (L, H, T, K) over keys, and these, of
    which the first n are the source.
    """
    import torch

    from tfm_core.probe.capture import capture
    from tfm_core.probe.labels import modules_by_kind, patch_names

    whole = (*source.prompt, *ids)
    n_in = source.longest if source.is_at_once else len(whole)
    begin = source.vocabulary.specials.bos
    tgt_in = torch.tensor([[begin, *whole, *[begin] * n_in][:n_in]], dtype=torch.int64)
    with capture(source.model, only={"weights"}) as cache:
        logits = source.model(source.src, tgt_in)[0].float()
    kind, modules = next(
        (kind, names)
        for kind, names in modules_by_kind(source.experiment).items()
        if kind in _KINDS
    )
    maps = torch.stack([cache[f"{name}.weights"][0].float() for name in modules])  # (L, H, Q, K)
    first = len(source.prompt) + (len(source.read) if kind == "sequence" else 0)
    rows = slice(first, first + len(ids))
    keys: tuple[str, ...] = source.read
    if kind == "picture":
        keys = patch_names(round(maps.size(-1) ** 0.5))
    n_read = len(keys)
    if kind in {"sequence", "text"}:
        keys = (*source.read, source.experiment.task.begin, *token_labels(source.tokens_of(whole)))
        n_read = len(source.read) + 1 + len(source.prompt)
    keys = keys[: maps.size(-1)]
    own = logits[len(source.prompt) :][: len(ids)].clone()
    own[:, list(source.never)] = -torch.inf
    return own, maps[:, :, rows, : len(keys)].numpy(), keys, n_read


def next_words(task: TextTask, begun: Sequence[str], most: int = 24) -> Words:
    """Return the words that follow a beginning in sampled sentences, the most frequent first.

    If none begins so, those that follow its last two words, or its last one.
    """
    words = tuple(begun)
    found = _after_beginnings(task).get(words)
    for n in (2, 1):
        if not found and len(words) >= n:
            found = _after_words(task, n).get(words[-n:])
    return tuple(word for word, _n in (found or Counter()).most_common(most))


@lru_cache(maxsize=16)
def _after_beginnings(task: TextTask) -> dict[Words, Counter[str]]:
    return _counted(task, lambda words, at: words[:at])


@lru_cache(maxsize=32)
def _after_words(task: TextTask, n: int) -> dict[Words, Counter[str]]:
    return _counted(task, lambda words, at: words[max(0, at - n) : at])


def _counted(task: TextTask, before: Callable[[Words, int], Words]) -> dict[Words, Counter[str]]:
    found: dict[Words, Counter[str]] = {}
    for words in sampled_sentences(task):
        for at, word in enumerate(words):
            found.setdefault(before(words, at), Counter())[word] += 1
    return found
