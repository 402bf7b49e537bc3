"""Scenes of digits on a canvas, and the captions that describe them. No torch.

Every digit has its own square; squares are disjoint, so of two digits one is wholly left of,
right of, above or below the other. A caption is one sentence, in English or Korean. It names the
numbers in ascending order (``named_order``), and says where the first is from each of the others:
“a three above a seven, left of an eight”, or 삼은 칠 위에 있고 팔 왼쪽에 있다.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tfm_core.choices.config.image_tasks import CaptionTaskConfig
from tfm_core.choices.config.shape import patches_per_side
from tfm_core.choices.variants.record import resolve
from tfm_core.choices.variants.tasks import LANGUAGES
from tfm_core.data.text.korean_words import TOPIC, particle
from tfm_core.data.text.numbers import ONES
from tfm_core.data.vocabulary import Vocabulary

CANVAS = 49  # pixels to a side
GRID = 7  # the corner of a drawn square lies on every seventh pixel
LARGE, SMALL = 21, 14  # sides of squares, in pixels
MARGIN = 7  # pixels by which a drawn scene is plain: see ``captions.are_plain``


@dataclass(frozen=True, slots=True)
class PlacedDigit:
    """A digit from 0 to 9 in its square of ``side`` pixels whose corner is left, top."""

    number: int
    left: int
    top: int
    side: int = LARGE

    @property
    def right(self) -> int:
        """The first column behind the square."""
        return self.left + self.side

    @property
    def bottom(self) -> int:
        """The first row below the square."""
        return self.top + self.side

    @property
    def middle_sum(self) -> int:
        """Twice the row plus twice the column of the middle: small near the top left corner."""
        return 2 * (self.left + self.top + self.side)


Scene = tuple[PlacedDigit, ...]


def gaps(first: PlacedDigit, second: PlacedDigit) -> tuple[int, int]:
    """Return the pixels between two squares, across and down; negative where they overlap."""
    across = max(second.left - first.right, first.left - second.right)
    down = max(second.top - first.bottom, first.top - second.bottom)
    return across, down


def are_disjoint(first: PlacedDigit, second: PlacedDigit) -> bool:
    """Return whether two squares share no pixel."""
    return max(gaps(first, second)) >= 0


def relation(first: PlacedDigit, second: PlacedDigit) -> str:
    """Return where ``first`` stands, seen from ``second``: left, right, above or below.

    Where two are true, the one with the wider gap counts; across, where both are equal.
    """
    across, down = gaps(first, second)
    if across >= down:
        return "left" if first.left < second.left else "right"
    return "above" if first.top < second.top else "below"


def named_order(scene: Sequence[PlacedDigit]) -> list[int]:
    """Return the order in which a caption names digits: ascending numbers.

    Of equal numbers the one nearer the top left corner (by row plus column) comes first.
    """
    return sorted(range(len(scene)), key=lambda i: (scene[i].number, scene[i].middle_sum))


def covered(box: Sequence[int], patch_size: int) -> list[int]:
    """Return the patches that a box touches, ascending, counted row by row from the top left.

    box: left, top, right, bottom in pixels, the last two behind the box.
    """
    left, top, right, bottom = box
    columns = range(left // patch_size, -(-right // patch_size))
    rows = range(top // patch_size, -(-bottom // patch_size))
    return [
        row * patches_per_side(CANVAS, patch_size) + column for row in rows for column in columns
    ]


ENGLISH = ONES[:10]
KOREAN = ("영", "일", "이", "삼", "사", "오", "육", "칠", "팔", "구")
ENGLISH_PLACES = {
    "left": ("left", "of"),
    "right": ("right", "of"),
    "above": ("above",),
    "below": ("below",),
}
KOREAN_PLACES = {"left": "왼쪽", "right": "오른쪽", "above": "위", "below": "아래"}
AT, IS, AND_IS, IT_IS = "에", "있다", "있고", "이다"
_SUFFIXES = frozenset([*TOPIC, AT, IT_IS])


@dataclass(frozen=True, slots=True)
class Caption:
    """The words of a scene. names[t]: the digit that word t names, by its place in the scene.

    None stands for words that name no digit: articles, sizes, relations, particles.
    """

    words: tuple[str, ...]
    names: tuple[int | None, ...]


def caption(scene: Sequence[PlacedDigit], config: CaptionTaskConfig) -> Caption:
    """Return the caption of a scene; sizes are told where the task draws two."""
    pairs = tuple(_grammar(config.language).write(scene, config.sizes))
    return Caption(tuple(word for word, _ in pairs), tuple(name for _, name in pairs))


def join(words: Sequence[str], config: CaptionTaskConfig) -> str:
    """Write words as a person reads them."""
    joined = _grammar(config.language).joined
    return "".join(word if i == 0 or word in joined else f" {word}" for i, word in enumerate(words))


@lru_cache(maxsize=32)
def vocabulary(config: CaptionTaskConfig) -> Vocabulary:
    """Return every word that a caption of the task may hold."""
    return Vocabulary(tuple(_grammar(config.language).words(config.n_digits, config.sizes)))


def longest(config: CaptionTaskConfig) -> int:
    """Return the words of the longest caption, without special tokens."""
    separate = [
        PlacedDigit(8, 0, 0),
        *(PlacedDigit(9, LARGE * i, 0) for i in range(1, config.n_digits)),
    ]
    return len(caption(separate, config).words)


_Words = Iterator[tuple[str, int | None]]


def _english(scene: Sequence[PlacedDigit], sizes: bool) -> _Words:
    first, *others = named_order(scene)
    yield from _english_noun(scene, first, sizes)
    for i, other in enumerate(others):
        if i:
            yield ",", None
        yield from ((word, None) for word in ENGLISH_PLACES[relation(scene[first], scene[other])])
        yield from _english_noun(scene, other, sizes)


def _english_noun(scene: Sequence[PlacedDigit], i: int, sizes: bool) -> _Words:
    noun = ENGLISH[scene[i].number]
    yield "an" if noun == "eight" and not sizes else "a", None
    if sizes:
        yield "large" if scene[i].side >= LARGE else "small", None
    yield noun, i


def _korean(scene: Sequence[PlacedDigit], sizes: bool) -> _Words:
    first, *others = named_order(scene)
    yield from _korean_noun(scene, first, sizes)
    yield (particle(TOPIC, KOREAN[scene[first].number]) if others else IT_IS), None
    for other in others:
        yield from _korean_noun(scene, other, sizes)
        yield KOREAN_PLACES[relation(scene[first], scene[other])], None
        yield AT, None
        yield (IS if other == others[-1] else AND_IS), None


def _korean_noun(scene: Sequence[PlacedDigit], i: int, sizes: bool) -> _Words:
    if sizes:
        yield "큰" if scene[i].side >= LARGE else "작은", None
    yield KOREAN[scene[i].number], i


def _english_words(n_digits: int, sizes: bool) -> list[str]:
    words = ["a", *(("large", "small") if sizes else ("an",)), *ENGLISH]
    words += ["left", "right", "of", "above", "below"] if n_digits > 1 else []
    return [*words, *([","] if n_digits > 2 else [])]


def _korean_words(n_digits: int, sizes: bool) -> list[str]:
    words = [*KOREAN, *(("큰", "작은") if sizes else ())]
    words += [*TOPIC, *KOREAN_PLACES.values(), AT, IS] if n_digits > 1 else [IT_IS]
    return [*words, *([AND_IS] if n_digits > 2 else [])]


@dataclass(frozen=True, slots=True)
class Grammar:
    """How the captions of a language are written.

    write: from a scene, and whether sizes are told, to words and the digits that they name. words:
    all there can be, from the number of digits and whether sizes are told. joined: words that are
    written without a space before them.
    """

    write: Callable[[Sequence[PlacedDigit], bool], _Words]
    words: Callable[[int, bool], list[str]]
    joined: frozenset[str]


ENGLISH_GRAMMAR = Grammar(_english, _english_words, frozenset([","]))
KOREAN_GRAMMAR = Grammar(_korean, _korean_words, _SUFFIXES)


def _grammar(language: str) -> Grammar:
    grammar: Grammar = resolve(LANGUAGES[language].grammar)
    return grammar
