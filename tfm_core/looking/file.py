"""A look as a file: safetensors with the maps, and what they are as JSON in its header.

What is read is untrusted: names, sizes and numbers are checked, and nothing in it runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import torch
from pydantic import Field
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from tfm_core.looking.seen import AttentionMap, Seen
from tfm_core.looking.unseen import sentence_of
from tfm_core.looking.vectors import Vectors
from tfm_core.probe.form import problem_of
from tfm_core.reading import Unreadable, json_of, open_tensors
from tfm_core.sentences import StudentError
from tfm_core.stored import Stored, WrongValue, line, text, whole

MARK = "tfm_core.look"
FORMAT = 2
_MAX_BYTES = 2**32
_MAX_MAPS, _MAX_LENGTH, _MAX_NAME, _MAX_TOKEN = 4096, 2**20, 300, 1000

Length = Annotated[int, whole(1, _MAX_LENGTH)]
Span = Annotated[list[Annotated[int, whole(0, _MAX_LENGTH)]], Field(min_length=2, max_length=2)]


@dataclass(frozen=True, slots=True)
class _Map:
    """What a map is; its numbers are tensors."""

    name: Annotated[str, text(_MAX_NAME)]
    kind: Literal["self", "cross"]
    queries: Span
    keys: Span
    length: Annotated[list[Length], Field(min_length=2, max_length=2)]
    is_fused: bool
    is_over_keys: bool


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a file says of a look."""

    format: Annotated[int, whole(1, 10**6)]
    model: Annotated[str, line(_MAX_NAME)]
    n_parameters: Annotated[int, whole(0, 10**13)]
    tokens: Annotated[list[list[Annotated[str, text(_MAX_TOKEN)]]], Field(max_length=2)]
    unseen: Annotated[list[Annotated[str, text(_MAX_TOKEN)]], Field(max_length=_MAX_MAPS)]
    maps: Annotated[list[_Map], Field(max_length=_MAX_MAPS)]


_STORED = Stored(_Facts, MARK)


Shown = TypeVar("Shown", bound=Seen)


def save(look: Seen, path: str | os.PathLike[str]) -> Path:
    """Write a look to a file and return its path. Raises OSError."""
    maps = list(look.maps.values())
    facts = _Facts(
        format=FORMAT,
        model=look.model,
        n_parameters=look.n_parameters,
        tokens=[list(row) for row in look.tokens],
        unseen=[str(one) for one in look.unseen],
        maps=[
            _Map(
                one.name,
                one.kind,
                [one.queries.start, one.queries.stop],
                [one.keys.start, one.keys.stop],
                list(one.length),
                one.is_fused,
                one.is_over_keys,
            )
            for one in maps
        ],
    )
    tensors: dict[str, Tensor] = {}
    for number, one in enumerate(maps):
        tensors[f"{number}.weights"] = one.weights.contiguous()
        if one.allowed is not None:
            tensors[f"{number}.allowed"] = one.allowed.contiguous()
        if one.vectors is not None:
            for name, vectors in one.vectors.tensors.items():
                tensors[f"{number}.{name}"] = vectors.contiguous()
    target = Path(path).expanduser()
    words = json.dumps(_STORED.plain(facts), ensure_ascii=False)
    try:
        save_file(tensors, target, {MARK: words})
    except SafetensorError as error:
        raise OSError(f"{target} cannot be written: {error}") from None
    return target


def load(
    path: str | os.PathLike[str],
    make: type[Shown],
    *,
    called: str = "",
    check: Callable[[Seen], None] = lambda look: None,
) -> Shown:
    """Read a look from a file. Raises StudentError, in a sentence, for any other file.

    make: the class of what is returned. called: the name of the file in that sentence; its own
    without one. check: raises StudentError for a look that is not wanted; called before weights
    are read, with their shapes alone.
    """
    target = Path(path).expanduser()
    called = called or target.name
    try:
        with open_tensors(target, "pt") as file:
            if target.stat().st_size > _MAX_BYTES:
                raise Unreadable("it is larger than {most} GiB", most=_MAX_BYTES // 2**30)
            facts = _facts(file.metadata() or {})
            shapes = [_map(file, number, one, "meta") for number, one in enumerate(facts.maps)]
            if len({one.name for one in shapes}) < len(shapes):
                raise Unreadable("two maps have one name")
            check(_look(facts, shapes, make))
            maps = [_map(file, number, one) for number, one in enumerate(facts.maps)]
    except FileNotFoundError:
        raise StudentError("There is no file {path}.", path=str(target)) from None
    except Unreadable as error:
        raise StudentError(
            "{name} is not a look ({why}).", name=called, why=error.sentence
        ) from None
    except StudentError:  # of ``check``
        raise
    except ValueError:
        raise StudentError(
            "{name} is not a look. Make one with look.save(FILE).", name=called
        ) from None
    return _look(facts, maps, make)


def _look(facts: _Facts, maps: Sequence[AttentionMap], make: type[Shown]) -> Shown:
    return make(
        model=facts.model,
        maps={one.name: one for one in maps},
        output=None,
        shapes={},
        n_parameters=facts.n_parameters,
        tokens=tuple(map(tuple, facts.tokens)),
        unseen=tuple(map(sentence_of, facts.unseen)),
    )


def _facts(metadata: dict[str, str]) -> _Facts:
    if MARK not in metadata:
        raise Unreadable("its header does not mark it as a look")
    try:
        facts = _STORED.read(json_of(metadata[MARK]))
    except WrongValue as error:
        raise Unreadable("“{name}” has an invalid value", name=error.name) from None
    if facts.format > FORMAT:
        raise Unreadable("a newer version wrote it")
    return facts


def _map(file: Any, number: int, facts: _Map, device: str = "cpu") -> AttentionMap:
    """Read one map. Raises Unreadable where its tensors are not those of such a map.

    device: "meta" for weights of which only the shape is read, and no vectors.
    """
    names = set(file.keys())
    if f"{number}.weights" not in names:
        raise Unreadable("it lacks the weights of “{name}”", name=facts.name)
    queries, keys = range(*facts.queries), range(*facts.keys)
    stored = file.get_slice(f"{number}.weights")
    weights = torch.empty(stored.get_shape(), device="meta")
    is_whole = weights.ndim == 4 and stored.get_dtype() == "F32"
    if not is_whole or weights.shape[2:] != (len(queries), len(keys)) or not weights.numel():
        raise Unreadable("the weights of “{name}” have another shape", name=facts.name)
    if queries.stop > facts.length[0] or keys.stop > facts.length[1]:
        raise Unreadable("“{name}” has positions beyond its length", name=facts.name)
    if device != "meta":
        weights = file.get_tensor(f"{number}.weights")
    if device != "meta" and not bool(torch.isfinite(weights).all()):
        raise Unreadable("“{name}” has weights that are not numbers", name=facts.name)
    allowed: Tensor | None = None
    if f"{number}.allowed" in names:
        allowed = file.get_tensor(f"{number}.allowed")
        fits = allowed.ndim == 4 and all(
            size in (1, whole) for size, whole in zip(allowed.shape, weights.shape, strict=True)
        )
        if allowed.dtype != torch.bool or not fits:
            raise Unreadable("the mask of “{name}” does not fit its weights", name=facts.name)
    return AttentionMap(
        facts.name,
        facts.kind,
        weights,
        allowed,
        queries,
        keys,
        (facts.length[0], facts.length[1]),
        facts.is_fused,
        facts.is_over_keys,
        None if device == "meta" else _vectors(file, number, facts.name, weights),
    )


def _vectors(file: Any, number: int, called: str, weights: Tensor) -> Vectors | None:
    """Read what a map was computed from. Raises Unreadable where it is not that of such weights."""
    names = [one.name for one in fields(Vectors) if f"{number}.{one.name}" in file.keys()]  # noqa: SIM118
    if not names:
        return None
    found = {name: file.get_tensor(f"{number}.{name}") for name in names}
    if problem := problem_of({name: one.numpy() for name, one in found.items()}, weights.shape):
        raise Unreadable("“{name}” has {what}", name=called, what=problem)
    return Vectors(**found)
