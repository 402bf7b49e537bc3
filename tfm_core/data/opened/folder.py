"""A Hugging Face folder: config.json, safetensors files, tokenizer.json; nothing in it is trusted.

Only JSON and safetensors are read: no pickle, and no code. The names, shapes and types of all
tensors, and with them the size of the model, are known before a single number is loaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfm_core.reading import MAX_TENSORS, Unreadable, content_of, object_of, open_tensors
from tfm_core.sentences import StudentError, in_bytes

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
        return sum(one.n_numbers * DTYPES[one.dtype] for one in self.tensors.values())

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
                raise Unopenable("{name} does not fit the files of weights.", name=INDEX)
            name = _WRAPPERS.sub("", stored.key)
            for old, new in _OLD.items():
                name = name.replace(old, new)
            if name in tensors:
                raise Unopenable("{name} is there twice.", name=name)
            tensors[name] = stored
    if mapped is not None and len(mapped) != len(tensors):
        raise Unopenable("{name} does not fit the files of weights.", name=INDEX)
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
        raise Unopenable("{name} does not fit the files of weights.", name=INDEX)
    names = sorted(set(mapped.values()))
    if not 0 < len(names) <= _MAX_SHARDS or len(mapped) > MAX_TENSORS:
        raise Unopenable("{name} does not fit the files of weights.", name=INDEX)
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
