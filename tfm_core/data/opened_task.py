"""What a model from a folder reads and writes, or is trained further on, cut by its tokenizer."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tfm_core.choices.config.pretrained_tasks import (
    OpenedWordsConfig,
    PretrainedAnswererConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
    TunedLabelsConfig,
    TunedTextConfig,
)
from tfm_core.data.download import Progress
from tfm_core.data.opened_folder import TOKENIZER, OpenedTokenizer, read_tokenizer
from tfm_core.data.text.corpus import CorpusTask
from tfm_core.data.text.task import Pair, TextTask
from tfm_core.data.text_data import TextData, encoded
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.sets import SPLITS, VOCABULARY
from tfm_core.data.user_data.task import UserTextTask
from tfm_core.data.vocabulary import (
    SPECIALS,
    Specials,
    Vocabulary,
    plain_token,
    spelled,
    token_labels,
)
from tfm_core.sentences import Paragraph, StudentError

SENTENCES = (
    "The animal didn't cross the street because it was too tired.",
    "The keys to the old cabinet are on the kitchen table.",
    "Alice was beginning to get very tired of sitting by her sister on the bank.",
    "When Mary and John went to the store, John gave a drink to Mary.",
)
"""What is looked at first: a pronoun, an agreement, a story, and names that come again."""

QUESTIONS = (
    "translate English to German: The house is small, but the garden is large.",
    "translate English to French: The cat sits on the table and looks at me.",
    "summarize: Alice was beginning to get very tired of sitting by her sister on the bank, and of "
    "having nothing to do.",
    "The <extra_id_0> walks in the <extra_id_1> park.",
)
"""The same for a model that answers: three of the tasks that T5 learned, and the gaps before."""

_MAX_LOST = 20
MIN_CONTEXT = 4
"""Tokens that a language model reads at once, at least."""

MEASURED = 64
"""Tokens of the texts on which a model is measured."""


@dataclass(frozen=True)
class TokenizerVocabulary(Vocabulary):
    """All tokens of a tokenizer, special ones among them, with the numbers that they have there."""

    special_ids: Specials = field(default_factory=Specials)

    def __post_init__(self) -> None:
        """Number the tokens."""
        object.__setattr__(self, "_ids", {token: i for i, token in enumerate(self.tokens)})

    @property
    def specials(self) -> Specials:
        """The numbers of the special tokens."""
        return self.special_ids

    def known_form(self, token: str) -> str | None:
        """Return a token if it is there: a tokenizer knows its own capitals."""
        return token if token in self else None

    def __contains__(self, token: object) -> bool:
        """Return whether a token is known, alone or as ``row`` calls it."""
        return isinstance(token, str) and self._known(token) is not None

    def id_of(self, token: str) -> int:
        """Return the number of a token, alone or as ``row`` calls it; that of <unk> otherwise."""
        number = self._known(token)
        return self.specials.unk if number is None else number

    def _known(self, token: str) -> int | None:
        if token in self._ids:
            return self._ids[token]
        older = self._ids.get(spelled(token))  # as earlier versions wrote it into runs
        return self._ids.get(plain_token(token), older)

    def row(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the tokens of one text by their numbers, each with its part of a character."""
        return token_labels(super().row(ids))

    def token(self, id: int) -> str:
        """Return the token of a number. Raises ValueError outside the vocabulary."""
        if not 0 <= id < len(self.tokens):
            raise ValueError(f"Token number {id} is not from 0 to {len(self.tokens) - 1}.")
        return self.tokens[id]


@dataclass(frozen=True)
class KnownTokenizer:
    """A tokenizer with its vocabulary, by the digest that a configuration holds."""

    tokenizer: OpenedTokenizer
    vocabulary: TokenizerVocabulary

    def tokens(self, text: str, *, is_whole: bool, most: int) -> tuple[str, ...]:
        """Return a text as tokens. Raises StudentError for an empty and for a too long one."""
        if not text.strip():
            raise StudentError("There is nothing to read. Type something.")
        ids = self.tokenizer.cut(text, is_whole=is_whole)
        if len(ids) > most:
            raise StudentError(
                "Too long: {n_tokens} tokens; the limit is {longest}.",
                n_tokens=len(ids),
                longest=most,
            )
        return self.vocabulary.row(ids)

    def typed(self, text: str, *, is_whole: bool, most: int) -> tuple[str, ...]:
        """Return a typed text as ``tokens`` does; nothing of it may be left out in silence."""
        tokens = self.tokens(text, is_whole=is_whole, most=most)
        if lost := self.tokenizer.lost(text):
            raise StudentError(
                "This model's tokenizer has no token for {letters}. Leave it out.",
                letters=" ".join(lost[:_MAX_LOST]),
            )
        return tokens

    def joined(self, tokens: Sequence[str]) -> str:
        """Return the text of tokens."""
        return self.tokenizer.text_of(self.vocabulary.encode(tokens))


def tokenizer_path(folder: Path, digest: str) -> Path:
    """Return where a tokenizer lies in a run's folder."""
    return folder / VOCABULARY / digest / TOKENIZER


def tokenizer_of(config: OpenedWordsConfig) -> KnownTokenizer:
    """Return the tokenizer of a model, from the folder of any run that has it.

    Raises StudentError where there is none.
    """
    ids = Specials(config.pad_id, config.bos_id, config.eos_id, config.unk_id)
    return _found(str(sets.root().parent), config.tokenizer, ids, config.n_words)


@lru_cache(maxsize=8)
def _found(runs: str, digest: str, ids: Specials, n_words: int) -> KnownTokenizer:
    for path in sorted(Path(runs).glob(f"*/{VOCABULARY}/{digest or '-'}/{TOKENIZER}")):
        tokenizer = read_tokenizer(path.parent, n_words=n_words)
        if tokenizer.digest == digest:
            spare = tuple(f"<{number}>" for number in range(len(tokenizer.tokens), n_words))
            vocabulary = TokenizerVocabulary((*tokenizer.shown(), *spare), special_ids=ids)
            return KnownTokenizer(tokenizer, vocabulary)
    raise StudentError(Paragraph("pretrained/no-tokenizer"))


@dataclass(frozen=True)
class WriterTask(CorpusTask):
    """A language model from a folder, which is measured on the app's text."""

    config: PretrainedTextConfig

    @property
    def src_vocabulary(self) -> Vocabulary:
        """Every token of the tokenizer."""
        return tokenizer_of(self.config).vocabulary

    def _pieces(self, text: str) -> list[str]:
        known = tokenizer_of(self.config)
        return list(known.vocabulary.row(known.tokenizer.cut(text, is_whole=False, most=len(text))))

    @property
    def window(self) -> int:
        """Tokens of the texts on which the model is measured."""
        return min(self.config.context, MEASURED)

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut a typed text. Raises StudentError for an empty one."""
        return tokenizer_of(self.config).typed(text, is_whole=False, most=10**6)

    def join_tgt(self, tokens: Sequence[str]) -> str:
        """Write as a person reads it."""
        return tokenizer_of(self.config).joined(tokens)


@dataclass(frozen=True)
class ReaderTask(TextTask):
    """A model from a folder that reads texts, with the tokens around them that it wants.

    No right answer is known; an encoder answers nothing.
    """

    config: PretrainedReaderConfig | PretrainedAnswererConfig

    @property
    def name(self) -> str:
        """The name of the task in the configuration."""
        return self.config.name

    @property
    def src_vocabulary(self) -> Vocabulary:
        """Every token of the tokenizer."""
        return tokenizer_of(self.config).vocabulary

    def sample(self, rng: random.Random) -> Pair:
        """Draw one of the first sentences, as far as the model is long enough."""
        return Pair(self.cut(rng.choice(self.sentences)), (), ())

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is looked at first."""
        return QUESTIONS if isinstance(self.config, PretrainedAnswererConfig) else SENTENCES

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut a typed text. Raises StudentError for an empty and for a too long one."""
        return tokenizer_of(self.config).typed(text, is_whole=True, most=self.config.max_src_len)

    def cut(self, text: str) -> tuple[str, ...]:
        """Cut a text and leave out what is too long, but not the token at its end."""
        tokens = tokenizer_of(self.config).tokens(text, is_whole=True, most=10**6)
        most = self.config.max_src_len
        return tokens if len(tokens) <= most else (*tokens[: most - 1], tokens[-1])

    def join_src(self, tokens: Sequence[str]) -> str:
        """Write as a person reads it."""
        return tokenizer_of(self.config).joined(tokens)

    def join_tgt(self, tokens: Sequence[str]) -> str:
        """Write as a person reads it."""
        return self.join_src(tokens)


reader, writer = lru_cache(maxsize=8)(ReaderTask), lru_cache(maxsize=8)(WriterTask)
"""Of an equal configuration they return the same object."""


# What is trained further


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
class TunedLabelsTask(UserTextTask):
    """Labelled sentences of a set, cut as an opened encoder reads them."""

    config: TunedLabelsConfig  # type: ignore[assignment]  # it names a set, too

    @property
    def src_vocabulary(self) -> Vocabulary:
        """Every token of the tokenizer."""
        return tokenizer_of(self.config).vocabulary

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
        answer = tuple(label if label in labels else SPECIALS[3] for label in cut.cut(row[1]))
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
    user_set = sets.find_vocabulary(config.data)
    if user_set.kind != "labels":
        raise StudentError("The set “{name}” has no labelled sentences.", name=user_set.name)
    return TunedLabelsTask(config, user_set)


def load_tuned_labels(
    config: TunedLabelsConfig, *, seed: int, progress: Progress | None = None
) -> TextData:
    """Return the splits of a set, whatever the seed. Raises ValueError where it is damaged."""
    task = tuned_labels(config)
    train, validation, test = (
        encoded(task, task.splits[split], config.context, 1) for split in SPLITS
    )
    return TextData(task, train, validation, test)
