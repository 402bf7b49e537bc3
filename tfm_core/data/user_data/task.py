"""Custom texts as tasks: drawn from a set, with the true answer where it is known.

No target token has a known origin, so all alignments are empty. A token that training never showed
becomes ``<unk>`` in a pair, as the model reads it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tfm_core.choices.config.text_tasks import OwnTextTaskConfig
from tfm_core.choices.variants.tasks import normalised
from tfm_core.data.text.task import Pair, TextTask, check_tokens
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.sets import SPLITS, SetDamaged, UserSet
from tfm_core.data.user_data.tokens import CUTS, Cutter
from tfm_core.data.vocabulary import SPECIALS, UNK, Vocabulary
from tfm_core.reading import json_of
from tfm_core.sentences import Paragraph, StudentError

TEXT = "text.txt"
TEST_TEXT = "test.txt"
"""The test file of a set that has one: never trained on."""


def user_text(set_id: str) -> str:
    """Return the text of a set. Raises ValueError if it is missing or damaged."""
    user_set = sets.find(set_id)
    if user_set.kind != "text":
        raise StudentError(
            "“{name}” is not plain text. Choose a text set or paste text.",
            name=user_set.name,
        )
    return user_set.content(TEXT).decode()


def user_test_text(set_id: str) -> str:
    """Return the test file of a set of a text, "" where its text is split by place.

    Raises ValueError if it is missing or damaged.
    """
    user_set = sets.find(set_id)
    return user_set.content(TEST_TEXT).decode() if TEST_TEXT in user_set.files else ""


def user_vocabulary(set_id: str) -> tuple[Cutter, tuple[str, ...]] | None:
    """Return how a set of a text is cut, and its vocabulary; None where the set does not say it.

    A run's copy will do. Raises ValueError if the set is missing or damaged.
    """
    user_set = sets.find_vocabulary(set_id)
    if sets.TOKENS not in user_set.files or user_set.kind != "text":
        return None
    (side,) = sides_of(user_set)
    return side


def sides_of(user_set: UserSet) -> list[tuple[Cutter, tuple[str, ...]]]:
    """Return how a set's sources and targets are cut, and their vocabularies. Raises SetDamaged."""
    with _damage_said(user_set):
        sides = json_of(user_set.content(sets.TOKENS))
        return [(Cutter.from_json(side["cut"]), tuple(side["words"])) for side in sides]


def rows_of(user_set: UserSet, split: str) -> list[tuple[str, str]]:
    """Return the two texts of each row of a split. Raises SetDamaged."""
    with _damage_said(user_set):
        lines = user_set.content(f"{split}.jsonl").decode().split("\n")
        rows = [(first, second) for first, second in map(json_of, filter(None, lines))]
        if not all(isinstance(text, str) for row in rows for text in row):
            raise ValueError
        return rows


@contextmanager
def _damage_said(user_set: UserSet) -> Iterator[None]:
    """Raise SetDamaged for what no file of a set holds."""
    try:
        yield
    except SetDamaged:
        raise
    except (ValueError, KeyError, TypeError):
        raise sets.damaged(user_set.name) from None


_SIZES = ("src_len", "tgt_len", "n_src", "n_tgt")


@dataclass(frozen=True)
class UserTextTask(TextTask):
    """Pairs or labelled sentences of a set."""

    config: OwnTextTaskConfig
    user_set: UserSet

    @property
    def name(self) -> str:
        """The name of the task in the configuration."""
        return self.config.name

    @property
    def src_vocabulary(self) -> Vocabulary:
        """Every token of the sources in the training part."""
        return self._sides[0][1]

    @property
    def tgt_vocabulary(self) -> Vocabulary:
        """Every token of the targets in the training part, or the labels."""
        return self._sides[1][1]

    @property
    def cutters(self) -> tuple[Cutter, Cutter]:
        """How sources and targets are cut; labels are not."""
        return self._sides[0][0], self._sides[1][0]

    @cached_property
    def _sides(self) -> tuple[tuple[Cutter, Vocabulary], tuple[Cutter, Vocabulary]]:
        src, tgt = ((cutter, Vocabulary(words)) for cutter, words in sides_of(self.user_set))
        return src, tgt

    @cached_property
    def splits(self) -> dict[str, tuple[Pair, ...]]:
        """The pairs of each part."""
        user_set = self.user_set if self.user_set.has_examples else sets.find(self.config.data)
        return {split: tuple(map(self._pair, rows_of(user_set, split))) for split in SPLITS}

    def sample(self, rng: random.Random) -> Pair:
        """Draw one pair of the training part."""
        return rng.choice(self._different)

    def every(self, limit: int) -> list[Pair] | None:
        """Return the pairs of training, one a source; None where they are more than ``limit``."""
        return list(self._different) if len(self._different) <= limit else None

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut what a person typed into source tokens; unknown ones become ``<unk>``.

        Raises ValueError for no or too many tokens.
        """
        cutter = self.cutters[0]
        return check_tokens(
            cutter.cut(normalised(text)),
            self.src_vocabulary,
            longest=self.config.max_src_len,
            kind=CUTS[cutter.unit].kind,
            reads_unknown=True,
        )

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return the different tokens of a text that ``tokenize`` reads as ``<unk>``."""
        return self.src_vocabulary.unknown(self.cutters[0].cut(normalised(text)))

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the target of a source that the set holds; None for all others.

        None, too, where a run has kept no more of the set than its vocabulary.
        """
        return self._answers.get(tuple(src)) if self.user_set.has_examples else None

    @property
    def missing(self) -> str | None:
        """Why no example can be drawn, or None."""
        return None if self.user_set.has_examples else sets.missing(self.config)

    def join_src(self, tokens: Sequence[str]) -> str:
        """Write source tokens as a person reads them."""
        return self.cutters[0].join(tokens)

    def join_tgt(self, tokens: Sequence[str]) -> str:
        """Write target tokens as a person reads them."""
        return self.cutters[1].join(tokens)

    @cached_property
    def _different(self) -> tuple[Pair, ...]:
        return tuple({pair.src: pair for pair in reversed(self.splits["train"])}.values())

    @cached_property
    def _answers(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        return {pair.src: pair.tgt for part in self.splits.values() for pair in part}

    def _pair(self, row: tuple[str, str]) -> Pair:
        (cut_src, src_words), (cut_tgt, tgt_words) = self._sides
        src = tuple(_known_or_unknown(src_words, token) for token in cut_src.cut(row[0]))
        tgt = tuple(_known_or_unknown(tgt_words, token) for token in cut_tgt.cut(row[1]))
        return Pair(src, tgt, ((),) * len(tgt))


def user_task(config: OwnTextTaskConfig) -> UserTextTask:
    """Return the task of a configuration; an equal one gives the same object while its set is here.

    Of a set that is gone it has the vocabulary that a run has kept, and no examples. Raises
    ValueError where not even that is here, the set is damaged, or another one.
    """
    user_set = sets.find_vocabulary(config.data)
    return _task(config, str(user_set.folder))


@lru_cache(maxsize=16)
def _task(config: OwnTextTaskConfig, _folder: str) -> UserTextTask:
    user_set = sets.find_vocabulary(config.data)
    sizes = {name: user_set.details.get(name) for name in _SIZES}
    if user_set.kind != config.name.removeprefix("own-") or sizes != config.model_dump(
        include={*_SIZES}
    ):
        raise StudentError(Paragraph("own-data/other-set", set_id=user_set.id, name=user_set.name))
    return UserTextTask(config, user_set)


def _known_or_unknown(vocabulary: Vocabulary, token: str) -> str:
    return token if token in vocabulary else SPECIALS[UNK]
