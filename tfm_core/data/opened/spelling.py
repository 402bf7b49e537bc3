"""How tokens of bytes are shown: as the text they stand for.

GPT-2 writes each byte as a letter of its own alphabet, SentencePiece a byte that it has no
piece for as ``<0xEC>``. Alone, a part of a character is shown in the latter way; in a row of tokens
``labels`` shows the character and which of its bytes a token has: ``안 1/3``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

# visible characters stand for themselves, and the others, in order, for those from 256 on
# (Radford et al. 2019, ``bytes_to_unicode`` of their code)
_VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]
_BYTES = {chr(byte): byte for byte in _VISIBLE} | {
    chr(256 + place): byte for place, byte in enumerate(_HIDDEN)
}
"""The byte that each character of GPT-2's alphabet stands for."""
_BYTE = re.compile("<0x([89A-F][0-9A-F])>")
_PART = re.compile(r"(.) ([1-4])(?:–([2-4]))?/([2-4])", re.DOTALL)
_SIGN = re.compile(r"[ \n]|[^\x00-\x7f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def spelled(token: str) -> str:
    """Return the text of a token in GPT-2's alphabet; any other token as it is."""
    if not all(letter in _BYTES for letter in token):
        return token
    return _text(bytes(_BYTES[letter] for letter in token))


def labels(tokens: Sequence[str]) -> tuple[str, ...]:
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


def unlabelled(label: str) -> str:
    """Return a token as it is alone, without the others that ``labels`` saw beside it."""
    return _PART.sub(_part_alone, label)


def running(tokens: Sequence[str]) -> list[str]:
    """Return what each token adds to a text: its first part brings a character."""
    return [_PART.sub(_part_in_text, label) for label in labels(tokens)]


def named(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return names of positions as labels where they are a tokenizer's; others as they are.

    Names in GPT-2's alphabet tell by a space, a line break or a whole character beyond ASCII.
    """
    if any("\u2581" in token for token in tokens):  # of SentencePiece, whose letters are letters
        return labels([token.replace("\u2581", " ") for token in tokens])
    row = labels(list(map(spelled, tokens)))
    changed = [new for old, new in zip(tokens, row, strict=True) if new != old]
    text = _BYTE.sub("", "".join(changed))
    if _SIGN.search(text) and not _CONTROL.search(text):
        return row
    return tuple(tokens)


def text_of(names: Sequence[str]) -> str:
    """Return names of positions as one text: of words, or of pieces that bring their spaces."""
    parts = running(names)
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
