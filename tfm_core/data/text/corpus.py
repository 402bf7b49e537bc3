"""A corpus as a text task: sources are empty, targets are what is written."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path

from tfm_core.choices.config.corpus_tasks import CorpusTaskConfig
from tfm_core.choices.variants.tasks import joined_words, normalised
from tfm_core.data.text.english_sentences import WORDS, one_clause
from tfm_core.data.text.in_context import GENERATORS, Generator
from tfm_core.data.text.task import Pair, TextTask, words_of
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.task import user_test_text, user_text, user_vocabulary
from tfm_core.data.user_data.tokens import Cutter, learn_from_text
from tfm_core.data.vocabulary import SPECIALS, UNK, Vocabulary
from tfm_core.sentences import N_, Sentence, StudentError

_ALICE = Path(__file__).with_name("alice.txt")


@cache
def read_text() -> str:
    """Return the first chapter of Alice's Adventures in Wonderland, about 11,000 characters."""
    return _ALICE.read_text(encoding="utf-8")


_SHOWN = {"words": 12, "characters": 60, "bpe": 20}  # tokens of an example


@dataclass(frozen=True)
class CorpusTask(TextTask):
    """A text, or sequences that are drawn, token by token."""

    config: CorpusTaskConfig

    @property
    def name(self) -> str:
        """The name of the task in the configuration."""
        return self.config.name

    @property
    def is_grammar(self) -> bool:
        """Whether sentences of the toy grammar are drawn, each with its end."""
        return self.config.name == "grammar"

    @property
    def generator(self) -> Generator | None:
        """What draws sequences of letters, all equally long; None where nothing does."""
        return GENERATORS.get(self.config.name)

    @property
    def is_drawn(self) -> bool:
        """Whether examples are drawn, rather than a text read."""
        return self.is_grammar or self.generator is not None

    @property
    def is_own(self) -> bool:
        """Whether this is a custom text."""
        return not self.is_drawn and bool(self.config.data or self.config.text)

    @property
    def window(self) -> int:
        """Tokens that are read at once."""
        return self.config.context

    @cached_property
    def text(self) -> str:
        """The text that is learned; where examples are drawn, a few of them."""
        if self.is_drawn:
            rng = random.Random(0)
            return "\n".join(self.join_tgt(self.sample(rng).tgt) for _ in range(20))
        if self.config.data:
            return user_text(self.config.data)
        return self.config.text or read_text()

    @cached_property
    def tokens(self) -> list[str]:
        """The text as tokens."""
        return self._pieces(self.text)

    @cached_property
    def test_tokens(self) -> list[str]:
        """The tokens of the test file; none where the text itself is split."""
        return self._pieces(self._test)

    def _pieces(self, text: str) -> list[str]:
        return self.cutter.cut_text(text)

    @property
    def _test(self) -> str:
        if self.is_drawn or not self.config.data:
            return ""
        return user_test_text(self.config.data)

    @cached_property
    def cutter(self) -> Cutter:
        """How texts are cut; a set has kept the merges of byte pairs."""
        if self.config.unit != "bpe":
            return Cutter(self.config.unit)
        if self._kept is not None:
            return self._kept[0]
        return learn_from_text("bpe", self.text, has_test=bool(self._test))

    @property
    def _kept(self) -> tuple[Cutter, tuple[str, ...]] | None:
        """How the set was cut and its vocabulary, where it is cut as the configuration says."""
        kept = user_vocabulary(self.config.data) if self.config.data else None
        return kept if kept is not None and kept[0].unit == self.config.unit else None

    @cached_property
    def src_vocabulary(self) -> Vocabulary:
        """Every token there is, those of the validation part too: a loss is then never flattered
        by an <unk>."""
        if self.generator is not None:
            return Vocabulary(self.generator.alphabet)
        if not self.is_grammar:
            if self._kept is not None:
                return Vocabulary(self._kept[1])
            return Vocabulary(self.cutter.text_vocabulary(self.text, self._test))
        if self.config.unit == "words":
            return Vocabulary(tuple(sorted(WORDS)))
        letters = {letter for word in WORDS for letter in word}
        return Vocabulary(tuple(sorted(letters | {word[0].upper() for word in WORDS} | {" ", "."})))

    @property
    def missing(self) -> str | None:
        """Why the text cannot be read, or None."""
        return sets.missing(self.config)

    def sample(self, rng: random.Random) -> Pair:
        """Draw a sentence, what is read of a sequence, or a short piece of the text."""
        if self.generator is not None:
            read = self.sequence(rng)[:-1]
            return Pair((), read, ((),) * len(read))
        if self.is_grammar:
            words = tuple(one_clause(rng))
            if self.config.unit == "characters":
                words = tuple(f"{' '.join(words).capitalize()}.")
            return Pair((), words, ((),) * len(words))
        length = min(_SHOWN[self.config.unit], self.config.context - 1, len(self.tokens))
        first = rng.randrange(len(self.tokens) - length + 1)
        piece = tuple(self.tokens[first : first + length])
        return Pair((), piece, ((),) * length)

    def sequence(self, rng: random.Random) -> tuple[str, ...]:
        """Draw a sequence of letters, whose last one is only predicted."""
        assert self.generator is not None
        return self.generator.draw(rng, self.config.context)

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut a typed text; in a custom text an unknown token becomes ``<unk>``.

        Raises ValueError for no tokens, and elsewhere for unknown ones.
        """
        tokens = self._cut(text)
        if not tokens:
            raise StudentError("There is nothing to read. Type something.")
        unknown = self.src_vocabulary.unknown(tokens)
        if unknown and not self.is_own:
            raise StudentError(self._unknown(unknown))
        return tuple(self.src_vocabulary.known_form(token) or SPECIALS[UNK] for token in tokens)

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return the different tokens of a text that ``tokenize`` reads as ``<unk>``."""
        return self.src_vocabulary.unknown(self._cut(text)) if self.is_own else ()

    def _cut(self, text: str) -> list[str]:
        if self.is_grammar and self.config.unit == "words":
            return words_of(text)
        if self.generator is not None and self.config.unit == "words":  # a sign belongs to a number
            return text.split()
        return self.cutter.cut_text(normalised(text))

    def join_src(self, tokens: Sequence[str]) -> str:
        """Write as a person reads it."""
        return self.join_tgt(tokens)

    def join_tgt(self, tokens: Sequence[str]) -> str:
        """Write as a person reads it."""
        return joined_words(tokens) if self.config.unit == "words" else "".join(tokens)

    def _unknown(self, tokens: Sequence[str]) -> Sentence:
        shown = ", ".join(f"“{token[:30]}”" for token in tokens[:5])
        if len(tokens) > 5:
            shown = N_("{shown} and {n} more", shown=shown, n=len(tokens) - 5)
        if self.config.unit != "words":
            known = "".join(t for t in self.src_vocabulary.tokens if t.isprintable())[:120]
            return N_(
                "The training text does not contain {shown}. The model knows {known}",
                shown=shown,
                known=known,
            )
        near = [word for token in tokens[:2] for word in self.src_vocabulary.nearest(token[:30])]
        near = near or list(self.src_vocabulary.tokens[:: max(1, len(self.src_vocabulary) // 6)])
        return N_(
            "The training text does not contain {shown}. Try {known}.",
            shown=shown,
            known=", ".join(near[:8]),
        )


learned_task = lru_cache(maxsize=8)(CorpusTask)
"""Of an equal configuration it returns the same object."""
