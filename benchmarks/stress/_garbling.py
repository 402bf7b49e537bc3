"""Garble one file or folder of a run; say in words how."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

ODD: tuple[Any, ...] = (
    -1, 0, 1, 2**63, 10**400, -(10**400), 1e308, float("nan"), float("inf"), None, True, "", "x",
    "\ud800", "a\nb", "<b>**x**</b>", "x" * 100_000, [], [[]], [1], {}, {"a": {}}, [None] * 1000,
    "2026-13-45", "0001-01-01T00:00:00+14:00", "2026-11-22T00:00:00+25:00", "../../etc", "finished",
    "running", "paused", "queued", 2.5, [["x"] * 7] * 6, "vit", "corpus",
)  # fmt: skip
_DIGITS = "@five thousand digits@"
Array = np.ndarray[Any, Any]


def garble(folder: Path, file: str, rng: random.Random) -> str:
    """Make one file or folder of a run into something else."""
    path = folder / file
    choice = rng.random()
    if not path.suffix or not path.is_file() or choice < 0.15:
        return _in_its_place(path, rng)
    if choice < 0.3:
        return _bytes(path, rng)
    if path.suffix == ".json":
        return _json(path, rng)
    return _lines(path, rng) if path.suffix == ".jsonl" else _tensors(path, rng)


def _in_its_place(path: Path, rng: random.Random) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    way = rng.choice(("nothing", "empty", "folder", "pipe", "link", "loop", "junk"))
    match way:
        case "empty":
            path.touch()
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to("/etc/passwd")
        case "loop":
            path.symlink_to(path)
        case "junk":
            path.write_bytes(rng.randbytes(1 + rng.randrange(5000)))
    return f"{way} in its place"


def _bytes(path: Path, rng: random.Random) -> str:
    content = path.read_bytes()
    if not content or rng.random() < 0.4:
        path.write_bytes(content[: rng.randrange(len(content) + 1)])
        return "cut off"
    path.write_bytes(changed_bytes(content, rng.choice((1, 3, 30)), rng.choice((200, 10**9)), rng))
    return "bytes changed"


def changed_bytes(content: bytes, n: int, most: int, rng: random.Random) -> bytes:
    """Return bytes of which ``n`` among the first ``most`` are others."""
    changed = bytearray(content)
    for _ in range(n):
        changed[rng.randrange(min(len(changed), most))] = rng.randrange(256)
    return bytes(changed)


def _json(path: Path, rng: random.Random) -> str:
    values = json.loads(path.read_bytes())
    way = change(values, rng)
    path.write_text(written(values))
    return way


def _lines(path: Path, rng: random.Random) -> str:
    lines = path.read_text().splitlines()
    for _ in range(rng.choice((1, 5))):
        number = rng.randrange(len(lines))
        record = json.loads(lines[number]) if lines[number].startswith("{") else {"event": "step"}
        change(record, rng)
        lines[number] = written(record)
    if rng.random() < 0.1:
        lines.insert(rng.randrange(len(lines)), '{"event": "step", "x": "' + "y" * 10**6 + '"}')
    path.write_text("\n".join(lines) + "\n")
    return "records changed"


def written(values: Any) -> str:
    """Return values as JSON, with whole numbers of any length."""
    return json.dumps(values).replace(f'"{_DIGITS}"', "1" * 5_000)


def change(values: Any, rng: random.Random) -> str:
    """Change a value somewhere in nested plain values, in place."""
    places = _places(values)
    if not places:
        return "unchanged"
    container, key = rng.choice(places)
    way = rng.choice(("replaced", "replaced", "replaced", "removed", "added", "doubled"))
    if way == "removed":
        del container[key]
    elif way == "added" and isinstance(container, dict):
        container[rng.choice(("x", "", "\ud800", "x" * 10_000))] = deepcopy(rng.choice(ODD))
    elif way == "doubled" and isinstance(container[key], list | str):
        container[key] = container[key] * 2
    else:
        way = "replaced"
        container[key] = deepcopy(rng.choice((*ODD, _DIGITS)))  # which may be changed once more
    return f"value {way}"


def _places(values: Any) -> list[tuple[Any, Any]]:
    keys = list(values) if isinstance(values, dict) else range(len(values))
    found: list[tuple[Any, Any]] = [(values, key) for key in keys]
    for key in keys:
        if isinstance(values[key], dict | list):
            found += _places(values[key])
    return found


def _tensors(path: Path, rng: random.Random) -> str:
    with safe_open(path, framework="numpy") as file:
        metadata = dict(file.metadata() or {})
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    is_said = metadata and rng.random() < 0.4
    way = _metadata(metadata, rng) if is_said else _tensor(tensors, rng)
    path.unlink()
    save_file(tensors, path, metadata)
    return way


def _metadata(metadata: dict[str, str], rng: random.Random) -> str:
    key = rng.choice(sorted(metadata))
    way = rng.choice(("changed", "changed", "odd", "removed"))
    if way == "removed":
        del metadata[key]
        return "metadata removed"
    values = json.loads(metadata[key])
    if way == "changed" and isinstance(values, dict | list):
        change(values, rng)
        metadata[key] = written(values)
    else:
        metadata[key] = rng.choice((written(rng.choice(ODD)), "{", "1" * 5_000, "7", "٣"))
    return "metadata changed"


_TENSORS: dict[str, Callable[[Array, random.Random], Array]] = {
    "transposed": lambda x, rng: np.ascontiguousarray(x.T),
    "flat": lambda x, rng: x.reshape(-1),
    "fewer": lambda x, rng: x[:1],
    "half as deep": lambda x, rng: np.ascontiguousarray(x[..., : max(1, x.shape[-1] // 2)]),
    "more": lambda x, rng: np.concatenate([x, x]),
    "none": lambda x, rng: x[:0],
    "one number": lambda x, rng: np.zeros((), x.dtype),
    "one axis more": lambda x, rng: x[None],
    "float64": lambda x, rng: x.astype(np.float64),
    "whole": lambda x, rng: x.astype(np.int64),
    "truth": lambda x, rng: x.astype(np.bool_),
    "not a number": lambda x, rng: np.full_like(x, np.nan if x.dtype.kind == "f" else 0),
    "infinite": lambda x, rng: np.full_like(x, np.inf if x.dtype.kind == "f" else 2**30),
    "negative": lambda x, rng: np.full_like(x, -1 if x.dtype.kind != "u" else 255),
}


def _tensor(tensors: dict[str, Array], rng: random.Random) -> str:
    name = rng.choice(sorted(tensors))
    way = rng.choice((*_TENSORS, "removed", "renamed", "all removed", "all of a kind removed"))
    if way == "removed":
        del tensors[name]
    elif way == "all removed":
        tensors.clear()
    elif way == "all of a kind removed":
        kind = name.partition("/")[0]
        for one in [one for one in tensors if one.startswith(kind)]:
            del tensors[one]
    elif way == "renamed":
        others = (
            "attention/decoder.layers.9.self_attention",
            "positions/x",
            "embeddings/",
            name[:-1],
        )
        tensors[rng.choice(others)] = tensors.pop(name)
    elif tensors[name].ndim:
        tensors[name] = _TENSORS[way](tensors[name], rng)
    return f"tensor {way}"
