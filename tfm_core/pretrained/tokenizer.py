"""The tokenizer of a folder: a tokenizer.json, which is data; no code is ever run for one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfm_core.pretrained.folder import Unopenable, content_in
from tfm_core.reading import is_whole
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKENIZER = "tokenizer.json"
MAX_CHARACTERS = 20_000
"""Of a text that is cut."""

_MAX_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Cut:
    """A text as a model reads it: ids, and the piece of the text that each token stands for.

    A token that the tokenizer adds, such as [CLS], stands for itself.
    """

    ids: tuple[int, ...]
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """How texts become ids, and ids texts.

    tokens: those of the vocabulary, by id. content: of tokenizer.json.
    """

    _tokenizer: Tokenizer
    tokens: tuple[str, ...]
    content: bytes

    @property
    def digest(self) -> str:
        """What tells this tokenizer from others."""
        return digest_of(self.content)

    @property
    def unknown_id(self) -> int | None:
        """The token of what the vocabulary lacks; None where there is none."""
        token = getattr(self._tokenizer.model, "unk_token", None)
        if token:
            number: int | None = self._tokenizer.token_to_id(token)
            return number
        given = json.loads(self.content)["model"].get("unk_id")  # of SentencePiece's pieces
        return given if is_whole(given, 0, len(self.tokens) - 1) else None

    def shown(self) -> tuple[str, ...]:
        """Return the tokens as a person reads them, each different from all others.

        Bytes of GPT-2's alphabet are characters again, and SentencePiece's mark is a space. A
        piece of a character, and what would then look like another token, stays as it is.
        """
        spelled = _BYTES if type(self._tokenizer.decoder).__name__ == "ByteLevel" else None
        special = {token.content for token in self._tokenizer.get_added_tokens_decoder().values()}
        known, shown = set(self.tokens), []
        for number, token in enumerate(self.tokens):
            plain = token
            if not token:
                plain = f"<{number}>"
            elif token not in special:
                plain = _readable(token, spelled)
            if plain != token and plain in known:
                plain = token
            known.add(plain)
            shown.append(plain)
        return tuple(shown)

    def cut(self, text: str, *, is_whole: bool = True, most: int = MAX_CHARACTERS) -> Cut:
        """Return a text as tokens, with those that the model wants around it if ``is_whole``.

        Raises StudentError for a text of more than ``most`` characters.
        """
        if len(text) > most:
            raise StudentError(
                "The text has {n:,} characters; the limit is {most:,}.",
                n=len(text),
                most=most,
            )
        cut = self._tokenizer.encode(text, add_special_tokens=is_whole)
        pieces = tuple(
            text[first:end] if end > first else self.tokens[number]
            for number, (first, end) in zip(cut.ids, cut.offsets, strict=True)
        )
        return Cut(tuple(cut.ids), pieces)

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without tokens that no reader sees."""
        known = [number for number in ids if 0 <= number < len(self.tokens)]
        text: str = self._tokenizer.decode(known)
        return text


def read_words(path: Path, *, n_words: int) -> Words:
    """Return the tokenizer of a folder. n_words: rows of the model's table. Raises Unopenable."""
    from tokenizers import Tokenizer

    try:
        content = content_in(path, TOKENIZER, most=_MAX_BYTES)
    except FileNotFoundError:
        raise Unopenable(
            "This folder has no {name}; other tokenizers need code, which is never run.",
            name=TOKENIZER,
        ) from None
    try:
        tokenizer = Tokenizer.from_buffer(content)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        by_id = {number: token for token, number in tokenizer.get_vocab().items()}
    except Exception:  # the library raises nothing more special
        raise Unopenable("{name} is not valid.", name=TOKENIZER) from None
    size = max(by_id, default=-1) + 1
    if not 0 < size <= n_words:
        raise Unopenable(
            "{name} has {size:,} tokens, but the model {n_words:,}.",
            name=TOKENIZER,
            size=size,
            n_words=n_words,
        )
    return Words(tokenizer, tuple(by_id.get(number, "") for number in range(size)), content)


def digest_of(content: bytes) -> str:
    """Return the name under which a tokenizer.json lies in a run's folder."""
    return hashlib.sha256(content).hexdigest()[:20]


def _alphabet() -> dict[str, int]:
    """Return the byte that each character of GPT-2's alphabet stands for.

    Visible characters stand for themselves, and the others, in order, for those from 256 on
    (Radford et al. 2019, ``bytes_to_unicode`` of their code).
    """
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {
        chr(256 + place): byte for place, byte in enumerate(hidden)
    }


_BYTES = _alphabet()


def _readable(token: str, spelled: dict[str, int] | None) -> str:
    if spelled is None:
        return token.replace("\u2581", " ")
    try:
        return bytes(spelled[letter] for letter in token).decode()
    except (KeyError, UnicodeDecodeError):
        return token
