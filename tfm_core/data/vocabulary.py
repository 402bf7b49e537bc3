"""Vocabulary: the tokens that a task knows, each with its number.

The first four numbers are the same everywhere: padding, begin, end and unknown.

Tokens of bytes are shown as the text they encode. GPT-2 writes each byte as a separate letter
alphabet, SentencePiece a byte that it has no piece for as ``<0xEC>``. A part of a character alone
is shown in that way; in a row of tokens ``token_labels`` shows the character and which of its bytes
a token has: ``안 1/3``.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
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
        return tuple(number for number in found if number not in (NONE, self.eos))


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
        return tuple(token for token in dict.fromkeys(tokens) if self.known_form(token) is None)

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


# visible characters encode themselves, and the others, in order, for those from 256 on
# (Radford et al. 2019, ``bytes_to_unicode`` of their code)
_VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]
_BYTES = {chr(byte): byte for byte in _VISIBLE} | {
    chr(256 + place): byte for place, byte in enumerate(_HIDDEN)
}
"""The byte that each character of GPT-2's alphabet encodes."""
_BYTE = re.compile("<0x([89A-F][0-9A-F])>")
_PART = re.compile(r"(.) ([1-4])(?:–([2-4]))?/([2-4])", re.DOTALL)
_SIGN = re.compile(r"[ \n]|[^\x00-\x7f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def spelled(token: str) -> str:
    """Return the text of a token in GPT-2's alphabet; any other token as it is."""
    if not all(letter in _BYTES for letter in token):
        return token
    return _text(bytes(_BYTES[letter] for letter in token))


def token_labels(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the tokens of one text; each that has a part of a character shows which."""
    if not any(map(_BYTE.search, tokens)):
        return tuple(tokens)
    rows = [
        _BYTE.sub(lambda byte: chr(0xDC00 + int(byte[1], 16)), token).encode(
            errors="surrogateescape"
        )
        for token in tokens
    ]
    owners = [number for number, row in enumerate(rows) for _byte in row]
    shown, at = [""] * len(tokens), 0
    for letter in b"".join(rows).decode(errors="surrogateescape"):
        raw, last = letter.encode(errors="surrogateescape"), 0
        for number, n in Counter(owners[at : at + len(raw)]).items():
            first, last = last + 1, last + n
            part = f" {first}/{len(raw)}" if n == 1 else f" {first}–{last}/{len(raw)}"
            shown[number] += _text(raw) if n == len(raw) else letter + part
        at += len(raw)
    return tuple(shown)


def plain_token(label: str) -> str:
    """Return a token as it is alone, without the others that ``token_labels`` saw beside it."""
    return _PART.sub(_part_alone, label)


def text_pieces(tokens: Sequence[str]) -> list[str]:
    """Return what each token adds to a text: its first part brings a character."""
    return [_PART.sub(_part_in_text, label) for label in token_labels(tokens)]


def position_labels(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return names of positions as labels where they are a tokenizer's; others as they are.

    Names in GPT-2's alphabet tell by a space, a line break or a whole character beyond ASCII.
    """
    if any("\u2581" in token for token in tokens):  # of SentencePiece, whose letters are letters
        return token_labels([token.replace("\u2581", " ") for token in tokens])
    row = token_labels(list(map(spelled, tokens)))
    changed = [new for old, new in zip(tokens, row, strict=True) if new != old]
    text = _BYTE.sub("", "".join(changed))
    if _SIGN.search(text) and not _CONTROL.search(text):
        return row
    return tuple(tokens)


def text_of_names(names: Sequence[str]) -> str:
    """Return names of positions as one text: of words, or of pieces that bring their spaces."""
    parts = text_pieces(names)
    are_pieces = parts != list(names) or any(part.startswith(" ") for part in parts)
    return ("" if are_pieces else " ").join(parts)


def _text(raw: bytes) -> str:
    """Return bytes as text; those that are no character as ``<0xEC>``."""
    text = raw.decode(errors="surrogateescape")
    return re.sub("[\udc80-\udcff]", lambda lone: f"<0x{ord(lone[0]) - 0xDC00:02X}>", text)


def _part_alone(part: re.Match[str]) -> str:
    raw = part[1].encode()
    if len(raw) != int(part[4]):
        return part[0]
    return "".join(f"<0x{byte:02X}>" for byte in raw[int(part[2]) - 1 : int(part[3] or part[2])])


def _part_in_text(part: re.Match[str]) -> str:
    if len(part[1].encode()) != int(part[4]):
        return part[0]
    return part[1] if part[2] == "1" else ""
