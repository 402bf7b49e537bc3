"""What an opened model is trained further on, cut by its tokenizer: labelled sentences, a text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tfm_core.config.corpus_tasks import CorpusTaskConfig
from tfm_core.config.pretrained_tasks import PretrainedTextConfig
from tfm_core.config.tuned_tasks import TunedLabelsConfig, TunedTextConfig
from tfm_core.data.opened.task import MEASURED, WriterTask, tokenizer_of
from tfm_core.data.own import sets
from tfm_core.data.own.task import SPLITS, OwnTask
from tfm_core.data.text.task import Pair
from tfm_core.data.text_data import TextData, encoded
from tfm_core.data.vocabulary import SPECIALS, Vocabulary
from tfm_core.sentences import StudentError

MIN_CONTEXT = 4
"""Tokens that a language model reads at once, at least."""


@dataclass(frozen=True)
class TunedWriterTask(WriterTask):
    """A language model from a folder that learns a text."""

    config: TunedTextConfig

    @cached_property
    def tokens(self) -> list[str]:
        """The text as tokens."""
        return self._all_tokens(self.text)

    @cached_property
    def test_tokens(self) -> list[str]:
        """The tokens of the test file; none where the text itself is split."""
        return self._all_tokens(self._test) if self._test else []

    def _all_tokens(self, text: str) -> list[str]:
        known = tokenizer_of(self.config)
        cut = known.words.cut(text, is_whole=False, most=len(text))
        return list(known.vocabulary.row(cut))

    def sample(self, rng: random.Random) -> Pair:
        """Draw a short piece of the text."""
        length = min(20, self.config.context - 1, len(self.tokens))
        first = rng.randrange(len(self.tokens) - length + 1)
        piece = tuple(self.tokens[first : first + length])
        return Pair((), piece, ((),) * length)

    @property
    def missing(self) -> str | None:
        """Why the text cannot be read, or None."""
        return sets.missing(self.config)


@dataclass(frozen=True)
class TunedLabelsTask(OwnTask):
    """Labelled sentences of a set, cut as an opened encoder reads them."""

    config: TunedLabelsConfig  # type: ignore[assignment]  # it names a set, too

    @property
    def src_vocabulary(self) -> Vocabulary:
        """Every token of the tokenizer."""
        return tokenizer_of(self.config).vocabulary

    @property
    def tgt_vocabulary(self) -> Vocabulary:
        """The labels."""
        return self._sides[1][1]

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut a typed text. Raises StudentError for an empty and for a too long one."""
        return tokenizer_of(self.config).typed(text, is_whole=True, most=self.config.max_src_len)

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return none: the tokenizer cuts what it does not know."""
        return ()

    def join_src(self, tokens: Sequence[str]) -> str:
        """Write as a person reads it."""
        return tokenizer_of(self.config).joined(tokens)

    def _pair(self, row: tuple[str, str]) -> Pair:
        cut, labels = self._sides[1]
        answer = tuple(one if one in labels else SPECIALS[3] for one in cut.cut(row[1]))
        known = tokenizer_of(self.config)
        read = known.tokens(row[0], is_whole=True, most=self.config.max_src_len)
        return Pair(read, answer, ((),) * len(answer))


def tuned_writer(config: TunedTextConfig) -> TunedWriterTask:
    """Return the task of a text; an equal configuration gives the same object."""
    return _writer(config)


_writer = lru_cache(maxsize=8)(TunedWriterTask)


def tuned_labels(config: TunedLabelsConfig) -> TunedLabelsTask:
    """Return the task of labelled sentences; of a set that is gone it has the labels alone.

    Raises ValueError where not even those are here.
    """
    return _labels(config, str(sets.find_vocabulary(config.data).folder))


@lru_cache(maxsize=8)
def _labels(config: TunedLabelsConfig, _folder: str) -> TunedLabelsTask:
    own = sets.find_vocabulary(config.data)
    if own.kind != "labels":
        raise StudentError("The set “{name}” has no labelled sentences.", name=own.name)
    return TunedLabelsTask(config, own)


def longest_context(config: TunedTextConfig) -> int:
    """Return how many tokens each part of a text has at least. Raises StudentError for too few.

    A window must be full: some tokenizers have no token that fills one up.
    """
    task = tuned_writer(config)
    parts = [len(task.tokens) // 10, *([len(task.test_tokens)] if task.test_tokens else [])]
    if min(parts) < MIN_CONTEXT:
        n_tokens = len(task.tokens) if parts[0] < MIN_CONTEXT else len(task.test_tokens)
        raise StudentError(
            "The text has {n} tokens; it needs {least}. Paste more.",
            n=n_tokens,
            least=10 * MIN_CONTEXT if parts[0] < MIN_CONTEXT else MIN_CONTEXT,
        )
    return min(parts)


def measured(config: CorpusTaskConfig) -> CorpusTaskConfig:
    """Return a configuration whose windows are as long as an opened model can be measured on.

    Raises StudentError where a text is too short.
    """
    match config:
        case TunedTextConfig():
            return config.replace(context=min(config.context, longest_context(config)))
        case PretrainedTextConfig():
            return config.replace(context=min(config.context, MEASURED))
    return config


def load_tuned_labels(config: TunedLabelsConfig) -> TextData:
    """Return the splits of a set. Raises ValueError where it is missing or damaged."""
    task = tuned_labels(config)
    train, validation, test = (
        encoded(task, task.splits[split], config.context, 1) for split in SPLITS
    )
    return TextData(task, train, validation, test)
