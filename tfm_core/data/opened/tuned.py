"""What an opened model is trained further on, cut by its tokenizer: labelled sentences, a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tfm_core.choices.config.tuned_tasks import TunedLabelsConfig, TunedTextConfig
from tfm_core.data.opened.task import WriterTask, tokenizer_of
from tfm_core.data.own import sets
from tfm_core.data.own.sets import SPLITS
from tfm_core.data.own.task import OwnTask
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

    @property
    def window(self) -> int:
        """Tokens that are read at once, not more than each part of the text has.

        A window must be full: some tokenizers have no token that fills one up. Raises StudentError
        for too few.
        """
        parts = [len(self.tokens) // 10, *([len(self.test_tokens)] if self.test_tokens else [])]
        if min(parts) < MIN_CONTEXT:
            is_text = parts[0] < MIN_CONTEXT
            raise StudentError(
                "The text has {n} tokens; it needs {least}. Paste more.",
                n=len(self.tokens if is_text else self.test_tokens),
                least=10 * MIN_CONTEXT if is_text else MIN_CONTEXT,
            )
        return min(self.config.context, *parts)


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


tuned_writer = lru_cache(maxsize=8)(TunedWriterTask)
"""Of an equal configuration it returns the same object."""


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


def load_tuned_labels(config: TunedLabelsConfig, *, seed: int) -> TextData:
    """Return the splits of a set, whatever the seed. Raises ValueError where it is damaged."""
    task = tuned_labels(config)
    train, validation, test = (
        encoded(task, task.splits[split], config.context, 1) for split in SPLITS
    )
    return TextData(task, train, validation, test)
