"""What every text task offers: pairs with their true alignment, and the truth for any source."""

from __future__ import annotations

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tfm_core.data.vocabulary import SPECIALS, UNK, Vocabulary
from tfm_core.sentences import N_, Sentence, StudentError, joined


@dataclass(frozen=True, slots=True)
class Pair:
    """A source, its target and where each target token comes from; without special tokens.

    ``alignment[t]`` holds the ascending source positions that decide target token ``t``; empty
    means that no source token does (the hyphens of an ISO date).
    """

    src: tuple[str, ...]
    tgt: tuple[str, ...]
    alignment: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a task's texts are cut and joined.

    cut, join: names of rules, which are macros of ``cuts.py.j2`` and ``joins.py.j2`` and functions
    of ``pages/components/asking.js``; cut is "" where texts aren't typed. has_breaks: line breaks
    are tokens. names: words that begin with a capital letter (dates). suffixes: tokens that follow
    a word without a space; ending: a last token that a full stop follows. merges: of pieces, two
    parts with a space between them, in the order in which they are made.
    """

    cut: str
    join: str
    has_breaks: bool = False
    names: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    ending: str = ""
    merges: tuple[str, ...] = ()


class TextTask(ABC):
    """A task of texts, whose target is a function of its source where one is known.

    Tasks that are alike have the same hash: what is drawn of one is kept by it. ``src_gap`` and
    ``tgt_gap`` stand between the tokens that a person reads.
    """

    spelling: ClassVar[Spelling]
    src_gap: ClassVar[str] = ""
    tgt_gap: ClassVar[str] = ""

    if TYPE_CHECKING:  # of each task

        @property
        def name(self) -> str:
            """The name of the task in the configuration."""

        @property
        def src_vocabulary(self) -> Vocabulary:
            """Every token that a source may hold."""

    @property
    def tgt_vocabulary(self) -> Vocabulary:
        """Every token that a target may hold; here the same."""
        return self.src_vocabulary

    @property
    def missing(self) -> str | None:
        """Why no example can be drawn, or None."""
        return None

    @abstractmethod
    def sample(self, rng: random.Random) -> Pair:
        """Draw one pair."""

    def every(self, limit: int) -> list[Pair] | None:
        """Return every pair there is, each once; None where they are more than ``limit``."""
        return None

    @abstractmethod
    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut what a person typed into source tokens. Raises ValueError with a sentence."""

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return the different tokens of a typed text that ``tokenize`` reads as ``<unk>``."""
        return ()

    def solve(self, src: Sequence[str]) -> tuple[str, ...] | None:
        """Return the true target of a source; None where the source has none."""
        return None

    def join_src(self, tokens: Sequence[str]) -> str:
        """Write source tokens as a person reads them."""
        return self.src_gap.join(tokens)

    def join_tgt(self, tokens: Sequence[str]) -> str:
        """Write target tokens as a person reads them."""
        return self.tgt_gap.join(tokens)


class SentenceTask(TextTask):
    """A task of sentences that a grammar draws, of which there are millions."""

    tgt_gap = " "

    def join_src(self, tokens: Sequence[str]) -> str:
        """Write as a sentence."""
        return as_sentence(" ".join(tokens))


def words_of(text: str) -> list[str]:
    """Return the words of a typed sentence, in lower case and without punctuation."""
    return re.sub(r"[\s.,!?;]+", " ", text.lower()).split()


def as_sentence(text: str) -> str:
    """Return a text with a capital and a full stop; "" for none."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def check_tokens(
    tokens: Sequence[str],
    vocabulary: Vocabulary,
    *,
    longest: int,
    kind: str = "word",
    reads_unknown: bool = False,
) -> tuple[str, ...]:
    """Return the tokens where a model of the task can read them, words in capitals that it knows.

    reads_unknown: a token outside the vocabulary becomes ``<unk>``. Raises ValueError: nothing
    there, more than ``longest``, or else such a token (the sentence names the nearest known ones).
    """
    if not tokens:
        raise StudentError("There is nothing to read. Type something.")
    if kind == "word" or reads_unknown:
        forms = [vocabulary.known_form(token) for token in tokens]
    else:
        forms = [token if vocabulary.id_of(token) > UNK else None for token in tokens]
    found = dict(zip(tokens, forms, strict=True))
    unknown = [] if reads_unknown else [token for token, form in found.items() if form is None]
    if unknown and kind == "word":
        raise StudentError(_unknown_words(unknown[:5], vocabulary))
    if unknown:
        listed = " ".join(f"“{token}”" for token in unknown[:5])
        known = " ".join(token for token in vocabulary.tokens if not token.isspace())
        raise StudentError(
            "This task does not know {listed}. It knows {known}", listed=listed, known=known
        )
    if len(tokens) > longest:
        raise StudentError(
            "Too long: {n_tokens} tokens; the limit is {longest}.",
            n_tokens=len(tokens),
            longest=longest,
        )
    return tuple(form or SPECIALS[UNK] for form in forms)


def _unknown_words(words: Sequence[str], vocabulary: Vocabulary) -> Sentence:
    """Name unknown words once, with near ones where there are any, and some known ones once."""
    sentences, strange = [], []
    for word in words:
        shown = word if len(word) <= 30 else f"{word[:29]}…"
        meant = EVERYDAY.get(word)
        near = [meant] if meant in vocabulary.tokens else vocabulary.nearest(word[:30])
        if near:
            rule = N_("“{shown}” is not a word of this task. Try {near}.")
            sentences.append(N_(rule, shown=shown, near=", ".join(map(str, near))))
        else:
            strange.append(shown)
    if len(strange) == 1:
        sentences.append(N_("“{shown}” is not a word of this task.", shown=strange[0]))
    elif strange:
        listed = ", ".join(f"“{shown}”" for shown in strange)
        sentences.append(N_("{listed} are not words of this task.", listed=listed))
    if strange:
        some = ", ".join(vocabulary.tokens[:: max(1, len(vocabulary.tokens) // 8)][:8])
        sentences.append(N_("Try {some}.", some=some))
    return joined(*sentences)


_NEAREST: dict[str, tuple[str, ...]] = {
    # people
    "friend": ("he", "she", "i", "you", "we", "they", "man", "woman", "person", "someone", "guy"),
    "child": ("boy", "girl", "kid", "children", "kids", "baby", "son", "daughter"),
    "teacher": ("professor", "tutor", "mother", "father", "mom", "dad", "parent"),
    "student": ("pupil", "learner", "brother", "sister", "people", "everybody"),
    "doctor": ("nurse", "physician", "dentist"),
    # animals
    "dog": ("puppy", "dogs", "wolf", "horse"),
    "cat": ("kitten", "cats", "mouse", "lion", "tiger"),
    "rabbit": ("bunny", "hare", "bird", "duck"),
    "bear": ("panda", "monkey", "animal"),
    # food and things
    "apple": ("fruit", "orange", "pear", "banana", "peach", "food"),
    "cake": ("bread", "pizza", "cookie", "pie", "breakfast", "lunch", "dinner", "ice"),
    "carrot": ("vegetable", "potato", "rice", "soup", "tomato"),
    "book": ("letter", "newspaper", "story", "novel", "paper", "song"),
    "bag": ("car", "bicycle", "bike", "bus", "box", "phone", "computer", "toy"),
    "hat": ("shirt", "coat", "shoes", "dress", "cap"),
    "chair": ("table", "desk", "sofa", "bed"),
    "flower": ("tree", "rose", "plant", "picture"),
    # places
    "room": ("house", "home", "kitchen", "office", "hotel"),
    "market": ("shop", "store", "supermarket", "town", "city"),
    "park": ("beach", "forest", "street", "zoo", "river"),
    "garden": ("yard", "field", "farm"),
    "school": ("university", "college", "class", "library"),
    # times
    "today": ("now", "tonight", "tomorrow", "morning"),
    "daily": ("always", "often", "usually", "everyday", "sometimes"),
    # verbs
    "likes": ("loves", "wants", "needs", "enjoys", "hates", "knows"),
    "like": ("love", "want", "need", "enjoy", "hate", "know"),
    "liked": ("loved", "wanted", "needed", "enjoyed", "hated", "knew"),
    "sees": ("looks", "watches", "reads", "hears"),
    "see": ("look", "watch", "read", "hear"),
    "saw": ("looked", "watched", "heard"),
    "comes": ("goes", "walks", "runs", "travels", "drives"),
    "come": ("go", "walk", "run", "travel", "drive"),
    "came": ("went", "walked", "ran", "travelled", "drove"),
    "buys": ("gets", "takes", "sells", "brings"),
    "buy": ("get", "take", "sell", "bring"),
    "bought": ("got", "took", "sold", "brought"),
    "draws": ("paints", "writes", "makes"),
    "draw": ("paint", "write", "make"),
    "drew": ("painted", "wrote", "made"),
    "eats": ("drinks", "cooks", "tastes"),
    "eat": ("drink", "cook", "taste"),
    "ate": ("drank", "cooked", "tasted"),
    "meets": ("visits", "calls", "talks"),
    "meet": ("visit", "call", "talk"),
    "met": ("visited", "called", "talked"),
    # adjectives and small words
    "big": ("large", "huge", "great", "tall"),
    "small": ("little", "tiny", "short"),
    "cute": ("pretty", "beautiful", "nice", "lovely", "sweet"),
    "kind": ("good", "friendly", "happy"),
    "the": ("my", "your", "his", "her", "our", "their", "this", "that", "its"),
    "a": ("some", "one", "every", "any", "another"),
    "in": ("on", "inside", "near", "by"),
    "to": ("into", "towards", "toward"),
    # reviews
    "film": ("movie",),
    "lovely": ("wonderful",),
    "awful": ("terrible", "horrible"),
}
EVERYDAY: dict[str, str] = {word: near for near, words in _NEAREST.items() for word in words}
