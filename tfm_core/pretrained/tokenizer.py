"""The tokenizer of a folder: a tokenizer.json, which is data; no code is ever run for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfm_core.pretrained.folder import Unopenable, content_in
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
    """How texts become ids, and ids texts. tokens: those of the vocabulary, by id."""

    _tokenizer: Tokenizer
    tokens: tuple[str, ...]

    def cut(self, text: str) -> Cut:
        """Return a text as tokens, with those that the model wants around it.

        Raises StudentError for a text that is too long.
        """
        if len(text) > MAX_CHARACTERS:
            raise StudentError(
                "The text has {n:,} characters; the limit is {most:,}.",
                n=len(text),
                most=MAX_CHARACTERS,
            )
        cut = self._tokenizer.encode(text)
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
    return Words(tokenizer, tuple(by_id.get(number, "") for number in range(size)))
