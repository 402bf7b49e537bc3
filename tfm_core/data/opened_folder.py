"""A Hugging Face folder: config.json, safetensors files, tokenizer.json; nothing in it is trusted.

Only JSON and safetensors are read: no pickle, and no code. The names, shapes and types of all
tensors, and with them the size of the model, are known before a single number is loaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tfm_core.data.vocabulary import spelled
from tfm_core.reading import (
    MAX_TENSORS,
    Unreadable,
    content_of,
    is_whole,
    json_of,
    object_of,
    open_tensors,
)
from tfm_core.sentences import N_, StudentError, in_bytes

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.implementations.base_tokenizer import BaseTokenizer


CONFIG = "config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SUFFIXES = (".json", ".safetensors", ".txt")
"""What the files of a folder that are read end with."""
MAX_BYTES = 4 * 2**30
"""Most bytes of all weights, unless the caller says less."""

DTYPES = {"F32": 4, "F16": 2, "BF16": 2}
"""The number formats that are read, with the bytes of a number."""

_MAX_JSON, _MAX_INDEX, _MAX_SHARDS = 2**20, 2**24, 200
_SHARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.safetensors", re.ASCII)
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "model.pth")
_WRAPPERS = re.compile(r"^((_orig_mod|module)\.)+")
"""What torch.compile and DistributedDataParallel put in front of every name."""
_OLD = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
"""Names of the first BERT, under which bert-base-uncased still lies on the Hub."""


class Unopenable(StudentError):
    """A folder cannot be opened as a model; the sentence says why."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where a tensor lies, by its name there, and what it is, as the file's header says."""

    file: Path
    key: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def n_numbers(self) -> int:
        """How many numbers it has."""
        return torch.Size(self.shape).numel()


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder whose files are checked as far as is possible without loading a tensor.

    config: what config.json holds. tensors: by name, without what wrappers put in front.
    opened: what it is called after, itself or the adapter whose base it is. changes: the adapter's.
    """

    path: Path
    config: Mapping[str, Any]
    tensors: Mapping[str, StoredTensor]
    opened: Path
    changes: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=dict)

    @property
    def n_bytes(self) -> int:
        """Bytes of the weights as they are stored."""
        return sum(stored.n_numbers * DTYPES[stored.dtype] for stored in self.tensors.values())

    def read(self, name: str) -> Tensor:
        """Return a tensor in fp32, with an adapter's change.

        Raises Unopenable where it has NaN or infinite numbers, or changed since the check.
        """
        values = numbers_of(self.tensors[name])
        if name in self.changes:
            values = self.changes[name](values)
        # NaN is both the smallest and the largest; one pass, and no tensor as large as this one
        if not torch.stack(values.aminmax()).isfinite().all():
            raise Unopenable("{name} has NaN or infinite numbers.", name=name)
        return values


def numbers_of(stored: StoredTensor) -> Tensor:
    """Return a tensor in fp32. Raises Unopenable where it changed since the check."""
    try:
        with open_tensors(stored.file.resolve(), "pt") as file:
            values: Tensor = file.get_tensor(stored.key).float()
    except (FileNotFoundError, Unreadable):
        raise _damaged(stored.file) from None
    if tuple(values.shape) != stored.shape:
        raise _damaged(stored.file)
    return values


def open_folder(path: Path, *, most: int = MAX_BYTES) -> Folder:
    """Return a folder, checked. most: bytes of all weights. Raises Unopenable."""
    path = path.expanduser()
    if not os.path.isdir(path):
        raise Unopenable("There is no folder {path}.", path=str(path))
    config = json_in(path, CONFIG)
    if "quantization_config" in config:
        raise Unopenable("These weights are quantised; save them as F32, F16 or BF16.")
    files, mapped = _shards(path)
    size = sum(file.stat().st_size for file in files)
    if size > most:
        raise Unopenable(
            "The weights have {size}; the limit is {most}.",
            size=in_bytes(size),
            most=in_bytes(most),
        )
    tensors: dict[str, StoredTensor] = {}
    for file in files:
        for stored in header(file):
            if mapped is not None and mapped.get(stored.key) != file.name:
                raise Unopenable("{name} does not match the weight files.", name=INDEX)
            name = _WRAPPERS.sub("", stored.key)
            for old, new in _OLD.items():
                name = name.replace(old, new)
            if name in tensors:
                raise Unopenable("{name} appears twice.", name=name)
            tensors[name] = stored
    if mapped is not None and len(mapped) != len(tensors):
        raise Unopenable("{name} does not match the weight files.", name=INDEX)
    return Folder(path, config, tensors, path)


def json_in(path: Path, name: str) -> dict[str, Any]:
    """Return the JSON object in a file of the folder. Raises Unopenable."""
    with _raising_unopenable(name):
        return object_of((path / name).resolve(), most=_MAX_INDEX if name == INDEX else _MAX_JSON)


def content_in(path: Path, name: str, *, most: int) -> bytes:
    """Return what a file of the folder holds. Raises FileNotFoundError and Unopenable."""
    try:
        return content_of((path / name).resolve(), most=most)
    except Unreadable as error:
        raise Unopenable("This folder cannot be opened: {why}.", why=error.sentence) from None


@contextmanager
def _raising_unopenable(name: str) -> Iterator[None]:
    """Raise Unopenable for a file that is not there, or cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise missing(name) from None
    except Unreadable as error:
        raise Unopenable("This folder cannot be opened: {why}.", why=error.sentence) from None


def missing(name: str) -> Unopenable:
    """Return the error for a folder without one of its files."""
    return Unopenable("This folder has no {name}.", name=name)


def _shards(path: Path) -> tuple[list[Path], dict[str, str] | None]:
    """Return the files of weights, and name -> file where there is an index."""
    if (path / WEIGHTS).is_file():
        return [path / WEIGHTS], None
    if not (path / INDEX).is_file():
        for name in _PICKLES:
            if (path / name).exists():
                raise Unopenable(
                    "{name} is a pickle, which can run code. Transformers saves safetensors: "
                    "model.save_pretrained(PATH)",
                    name=name,
                )
        raise missing(WEIGHTS)
    mapped = json_in(path, INDEX).get("weight_map")
    if not isinstance(mapped, dict) or not all(
        isinstance(file, str) and _SHARD.fullmatch(file) for file in mapped.values()
    ):
        raise Unopenable("{name} does not match the weight files.", name=INDEX)
    names = sorted(set(mapped.values()))
    if not 0 < len(names) <= _MAX_SHARDS or len(mapped) > MAX_TENSORS:
        raise Unopenable("{name} does not match the weight files.", name=INDEX)
    for name in names:
        if not (path / name).is_file():
            raise missing(name)
    return [path / name for name in names], mapped


def header(file: Path) -> list[StoredTensor]:
    """Return the tensors of a file, none of them loaded. Raises Unopenable."""
    found = []
    with _raising_unopenable(file.name), open_tensors(file.resolve(), "pt") as opened:
        for key in opened.keys():  # noqa: SIM118
            part = opened.get_slice(key)
            found.append(StoredTensor(file, key, part.get_dtype(), tuple(part.get_shape())))
    return found


def _damaged(file: Path) -> Unopenable:
    return Unopenable("{name} is damaged or incomplete.", name=file.name)


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
class OpenedTokenizer:
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
                plain = next(form for form in (plain, token, "") if form not in known)
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
                pieces = [piece for piece, _at in tokenizer.pre_tokenizer.pre_tokenize_str(normal)]
            return any(sign not in known and not sign.isspace() for sign in "".join(pieces))

        return "".join(filter(is_lost, dict.fromkeys(text)))

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without tokens that no reader sees."""
        known = [number for number in ids if 0 <= number < len(self.tokens)]
        with _raising(StudentError(_CANNOT, name=TOKENIZER)):
            text: str = self._tokenizer.decode(known)
        return text


def read_tokenizer(path: Path, *, n_words: int) -> OpenedTokenizer:
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
            "{name} has {size:,} tokens, but the model has {n_words:,}.",
            name=TOKENIZER,
            size=size,
            n_words=n_words,
        )
    return OpenedTokenizer(
        tokenizer, tuple(by_id.get(number, "") for number in range(size)), content
    )


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
    for token, number in sorted(added.items(), key=lambda item: item[1]):
        tokenizer.add_tokens([token])
        if tokenizer.token_to_id(token) != number:
            raise ValueError(token)
    content: str = tokenizer.to_str()
    return content.encode()


_CANNOT = N_("{name} cannot split this text; it may have no token for unknown characters.")


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
