"""Vocabulary: the tokens that a task knows, each with its number.

The first four numbers are the same everywhere: padding, begin, end and unknown.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

PAD, BOS, EOS, UNK = 0, 1, 2, 3
NONE = -1
"""The number of a special token that a vocabulary lacks: no token has it."""
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
MASK = "<mask>"
"""The token of a hidden word: no special one, but one of its task's own, as the last of them."""


@dataclass(frozen=True, slots=True)
class Specials:
    """The numbers of a vocabulary's special tokens; NONE for one that it lacks."""

    pad: int = PAD
    bos: int = BOS
    eos: int = EOS
    unk: int = UNK

    @property
    def unwritten(self) -> tuple[int, ...]:
        """What no text holds: padding, begin and unknown, where they are tokens of their own."""
        found = dict.fromkeys((self.pad, self.bos, self.unk))
        return tuple(one for one in found if one not in (NONE, self.eos))


@dataclass(frozen=True)
class Vocabulary:
    """Tokens to numbers and back.

    ``tokens`` are the task's own, without the special ones, which get the numbers 0 to 3.
    Raises ValueError when a token stands twice or is a special one.
    """

    tokens: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    @property
    def specials(self) -> Specials:
        """The numbers of the special tokens."""
        return _OURS

    def __post_init__(self) -> None:
        """Number the tokens."""
        everything = (*SPECIALS, *self.tokens)
        ids = {token: i for i, token in enumerate(everything)}
        if len(ids) < len(everything):
            twice = sorted({token for token in everything if everything.count(token) > 1})
            raise ValueError(f"Each token may stand only once in a vocabulary: {', '.join(twice)}.")
        object.__setattr__(self, "_ids", ids)

    def __len__(self) -> int:
        """Number of tokens, special ones included."""
        return len(self._ids)

    def __contains__(self, token: object) -> bool:
        """Return whether a token is known."""
        return token in self._ids

    def id_of(self, token: str) -> int:
        """Return the number of a token, that of <unk> where it is not known."""
        return self._ids.get(token, self.specials.unk)

    def known_form(self, token: str) -> str | None:
        """Return a token as the task knows it: as written, else in other capitals, or None."""
        forms = (token, token.lower(), token.capitalize(), token.upper())
        return next((form for form in forms if self._ids.get(form, UNK) > UNK), None)

    def unknown(self, tokens: Iterable[str]) -> tuple[str, ...]:
        """Return the different tokens that are known in no form."""
        return tuple(one for one in dict.fromkeys(tokens) if self.known_form(one) is None)

    def token(self, id: int) -> str:
        """Return the token of a number. Raises ValueError outside the vocabulary."""
        if not 0 <= id < len(self):
            raise ValueError(f"Token number {id} is not from 0 to {len(self) - 1}.")
        return SPECIALS[id] if id < len(SPECIALS) else self.tokens[id - len(SPECIALS)]

    @property
    def names(self) -> tuple[str, ...]:
        """Every token, special ones included, by number."""
        return self.row(range(len(self)))

    def row(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the tokens of one text by their numbers. Raises ValueError as ``token``."""
        return tuple(map(self.token, ids))

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the numbers of tokens; adds no special ones."""
        return [self.id_of(token) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens of numbers up to the first EOS, without PAD and BOS."""
        specials = self.specials
        written = itertools.takewhile(lambda id: id != specials.eos, ids)
        return list(self.row(id for id in written if id not in (specials.pad, specials.bos)))

    def nearest(self, word: str, n: int = 3, *, least: float = 0.6) -> list[str]:
        """Return up to ``n`` known tokens that are spelled most like ``word``, best first.

        least: how alike they must be, from 0 to 1.
        """
        return difflib.get_close_matches(word, self.tokens, n=n, cutoff=least)


_OURS = Specials()
