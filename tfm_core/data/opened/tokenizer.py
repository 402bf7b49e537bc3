"""The tokenizer of a folder: tokenizer.json or a list of its words. Both are data; no code runs."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfm_core.data.opened.folder import Unopenable, content_in, json_in
from tfm_core.data.opened.spelling import spelled
from tfm_core.reading import is_whole, json_of
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.implementations.base_tokenizer import BaseTokenizer

TOKENIZER = "tokenizer.json"
WORDS, PIECES, MERGES = "vocab.txt", "vocab.json", "merges.txt"
SETTINGS, ADDED = "tokenizer_config.json", "added_tokens.json"
FILES = (TOKENIZER, WORDS, PIECES, MERGES, SETTINGS, ADDED)
MAX_CHARACTERS = 20_000
"""Of a text that is cut."""

MAX_GROWTH = 1_000
"""How many times as long a tokenizer may make a text; T5's has 40."""

_MAX_BYTES = 64 * 2**20
_GROWTHS = {"ByteLevel": 4, "Precompiled": 20, "NFKC": 18, "NFKD": 18, "NFD": 4}
"""Of what tokenizers do to a letter; Unicode's longest compatibility decomposition has 18."""


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
        return hashlib.sha256(self.content).hexdigest()[:20]

    @property
    def unknown_id(self) -> int | None:
        """The token of what the vocabulary lacks; None where there is none."""
        token = getattr(self._tokenizer.model, "unk_token", None)
        if token:
            number: int | None = self._tokenizer.token_to_id(token)
            return number
        given = json_of(self.content)["model"].get("unk_id")  # of SentencePiece's pieces
        return given if is_whole(given, 0, len(self.tokens) - 1) else None

    @property
    def _special(self) -> set[str]:
        """The tokens that no text is cut to by its letters."""
        return {token.content for token in self._tokenizer.get_added_tokens_decoder().values()}

    def shown(self) -> tuple[str, ...]:
        """Return the tokens as a person reads them, each different from all others.

        Bytes of GPT-2's alphabet are characters again, and SentencePiece's mark is a space. What
        would then look like another token stays as it is.
        """
        of_bytes = any(step["type"] == "ByteLevel" for step in _steps(self._tokenizer.decoder))
        known, shown, special = set(self._special), [], self._special
        for number, token in enumerate(self.tokens):
            plain = token
            if token not in special:
                plain = spelled(token) if of_bytes else token.replace("\u2581", " ")
                plain = next(one for one in (plain, token, "") if one not in known)
            shown.append(plain or f"<{number}>")
            known.add(shown[-1])
        return tuple(shown)

    def cut(
        self, text: str, *, is_whole: bool = True, most: int = MAX_CHARACTERS
    ) -> tuple[int, ...]:
        """Return a text as ids, with those that the model wants around it if ``is_whole``.

        Raises StudentError for a text of more than ``most`` characters.
        """
        if len(text) > most:
            raise StudentError(
                "The text has {n:,} characters; the limit is {most:,}.",
                n=len(text),
                most=most,
            )
        with _raising(StudentError(_CANNOT, name=TOKENIZER)):
            return tuple(self._tokenizer.encode(text, add_special_tokens=is_whole).ids)

    def lost(self, text: str) -> str:
        """Return the letters of a text that byte pairs without an unknown token leave out."""
        model = self._tokenizer.model
        if type(model).__name__ != "BPE" or model.unk_token is not None or model.byte_fallback:
            return ""
        tokenizer, special = self._tokenizer, self._special
        known = {sign for token in self.tokens if token not in special for sign in token}

        def is_lost(letter: str) -> bool:
            normal = letter
            if tokenizer.normalizer is not None:
                normal = tokenizer.normalizer.normalize_str(letter)
            pieces = [normal]
            if tokenizer.pre_tokenizer is not None:
                pieces = [one for one, _at in tokenizer.pre_tokenizer.pre_tokenize_str(normal)]
            return any(sign not in known and not sign.isspace() for sign in "".join(pieces))

        return "".join(filter(is_lost, dict.fromkeys(text)))

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without tokens that no reader sees."""
        known = [number for number in ids if 0 <= number < len(self.tokens)]
        with _raising(StudentError(_CANNOT, name=TOKENIZER)):
            text: str = self._tokenizer.decode(known)
        return text


def read_words(path: Path, *, n_words: int) -> Words:
    """Return the tokenizer of a folder. n_words: rows of the model's table. Raises Unopenable."""
    from tokenizers import Tokenizer

    content = _content(path)
    with _raising(Unopenable("{name} is not valid.", name=TOKENIZER)):
        tokenizer = Tokenizer.from_buffer(content)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        by_id = {number: token for token, number in tokenizer.get_vocab().items()}
        growth = math.prod(map(_growth, _steps(tokenizer.normalizer)))
        growth *= math.prod(map(_growth, _steps(tokenizer.decoder)))
    if growth > MAX_GROWTH:
        raise Unopenable(
            "{name} makes texts up to {n:.0e} times as long; the limit is {most:,}.",
            name=TOKENIZER,
            n=min(growth, 1e300),
            most=MAX_GROWTH,
        )
    size = max(by_id, default=-1) + 1
    if not 0 < size <= n_words:
        raise Unopenable(
            "{name} has {size:,} tokens, but the model {n_words:,}.",
            name=TOKENIZER,
            size=size,
            n_words=n_words,
        )
    return Words(tokenizer, tuple(by_id.get(number, "") for number in range(size)), content)


def _content(path: Path) -> bytes:
    """Return a folder's tokenizer.json; without one, what its words make. Raises Unopenable."""
    with contextlib.suppress(FileNotFoundError):
        return content_in(path, TOKENIZER, most=_MAX_BYTES)
    settings = json_in(path, SETTINGS) if (path / SETTINGS).exists() else {}
    kind = settings.get("tokenizer_class")
    with contextlib.suppress(FileNotFoundError):
        if kind in (None, "BertTokenizer", "BertTokenizerFast"):
            return _of_words(path, settings)
    with contextlib.suppress(FileNotFoundError):
        if kind in (None, "GPT2Tokenizer", "GPT2TokenizerFast"):
            return _of_byte_pairs(path, settings)
    raise Unopenable(
        "This folder has no {name}. Transformers writes one: "
        "AutoTokenizer.from_pretrained(PATH).save_pretrained(PATH)",
        name=TOKENIZER,
    )


def _of_words(path: Path, settings: dict[str, Any]) -> bytes:
    """Return the tokenizer.json of BERT's words. Raises FileNotFoundError and Unopenable."""
    from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

    lines, added = _lines(path, WORDS), _added(path)
    names = ("unk_token", "sep_token", "cls_token", "pad_token", "mask_token")
    special: dict[str, Any] = {name: _token(settings[name]) for name in names if settings.get(name)}
    with _raising(Unopenable("{name} is not valid.", name=WORDS)):
        return _written(
            BertWordPieceTokenizer(
                {token: number for number, token in enumerate(lines)},
                lowercase=settings.get("do_lower_case", True),
                strip_accents=settings.get("strip_accents"),
                handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
                **special,
            ),
            added,
        )


def _of_byte_pairs(path: Path, settings: dict[str, Any]) -> bytes:
    """Return the tokenizer.json of GPT-2's byte pairs. Raises as ``_of_words``."""
    from tokenizers.implementations.byte_level_bpe import ByteLevelBPETokenizer

    lines, added = _lines(path, MERGES), _added(path)
    content = content_in(path, PIECES, most=_MAX_BYTES)
    names = ("bos_token", "eos_token", "unk_token", "pad_token")
    special = dict.fromkeys(_token(settings.get(name) or "<|endoftext|>") for name in names)
    with _raising(Unopenable("{name} is not valid.", name=f"{PIECES}, {MERGES}")):
        vocabulary = json_of(content)
        pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
        tokenizer = ByteLevelBPETokenizer(
            vocabulary,
            [(first, second) for first, second in pairs],
            add_prefix_space=settings.get("add_prefix_space", False),
        )
        tokenizer.add_special_tokens([token for token in special if token in vocabulary])
        return _written(tokenizer, added)


def _lines(path: Path, name: str) -> list[str]:
    """Return the lines of a file; a word may hold what else ends a line of Unicode."""
    content = content_in(path, name, most=_MAX_BYTES)
    with _raising(Unopenable("{name} is not valid.", name=name)):
        return content.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")


def _added(path: Path) -> dict[str, Any]:
    return json_in(path, ADDED) if (path / ADDED).exists() else {}


def _token(given: Any) -> str:
    """Return a special token, which may stand in an object."""
    return str(given.get("content") if isinstance(given, dict) else given)


def _written(tokenizer: BaseTokenizer, added: dict[str, Any]) -> bytes:
    """Return a tokenizer.json. added: id of each token behind the words, which must be next."""
    for token, number in sorted(added.items(), key=lambda one: one[1]):
        tokenizer.add_tokens([token])
        if tokenizer.token_to_id(token) != number:
            raise ValueError(token)
    content: str = tokenizer.to_str()
    return content.encode()


_CANNOT = N_("{name} cannot cut this text: it may have no token for what its vocabulary lacks.")


@contextlib.contextmanager
def _raising(error: StudentError) -> Iterator[None]:
    """Raise an error in place of what ``tokenizers`` raises, which has no common type."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of Rust is no Exception
        raise error from None


def _steps(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the steps of a normalizer or decoder, as tokenizer.json writes them."""
    waiting = [] if part is None else [json_of(part.__getstate__())]
    while waiting:
        step = waiting.pop()
        waiting += step.get("normalizers") or step.get("decoders") or ()
        yield step


def _growth(step: dict[str, Any]) -> int:
    """Return how many times as long a step can make a text."""
    if step["type"] == "Replace":
        given = step["pattern"].get("String", "")  # an expression may match between two letters
        return -(-len(step["content"]) // len(given)) if given else 1 + len(step["content"])
    return _GROWTHS.get(step["type"], 1)
