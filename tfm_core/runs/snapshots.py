"""Snapshots: what a model attended to and predicted on the probe, at one step of its training.

One safetensors file a snapshot, half precision, numpy only: reading one needs no torch.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from tfm_core import byte_cache
from tfm_core.probe.types import Array, Probe, Snapshot
from tfm_core.runs.atomic import read_json, write_bytes, write_json
from tfm_core.sentences import StudentError


def snapshot_path(folder: Path, step: int) -> Path:
    """Return where the snapshot of a step lies in a run's folder."""
    return folder / "snapshots" / f"{step:08d}.safetensors"


def write(folder: Path, snapshot: Snapshot) -> Path:
    """Write a snapshot into a run's folder and return its path. Raises OSError."""
    tensors: dict[str, Array] = {}
    for name, value in snapshot.attention.items():
        tensors[f"attention/{name}"] = np.ascontiguousarray(value, np.float16)
    for name, value in snapshot.positions.items():
        tensors[f"positions/{name}"] = np.ascontiguousarray(value, np.float16)
    for name, value in snapshot.embeddings.items():
        tensors[f"embeddings/{name}"] = np.ascontiguousarray(value, np.float16)
    for name, kind in _PREDICTIONS.items():
        part = getattr(snapshot, name)
        if part is not None:
            tensors[f"predictions/{name}"] = np.ascontiguousarray(part, kind)
    metadata = {"step": str(snapshot.step)}
    for name in ("texts", "tokens"):
        words = getattr(snapshot, name)
        if words is not None:
            metadata[name] = json.dumps(words, ensure_ascii=False)
    path = snapshot_path(folder, snapshot.step)
    path.parent.mkdir(exist_ok=True)
    write_bytes(path, save(tensors, metadata), lasting=True)
    return path


_PREDICTIONS: dict[str, type] = {
    "probabilities": np.float16,
    "ids": np.int32,
    "confidence": np.float16,
}


def read(path: Path) -> Snapshot:
    """Read a snapshot. Raises ValueError, in a sentence, where it is missing or damaged."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        texts = json.loads(metadata["texts"]) if "texts" in metadata else None
        tokens = json.loads(metadata["tokens"]) if "tokens" in metadata else None
        step = int(metadata["step"])
    except FileNotFoundError:
        raise StudentError(
            "There is no snapshot {stem} here.", stem=path.stem.lstrip("0") or "0"
        ) from None
    except (OSError, SafetensorError, ValueError, KeyError, RecursionError):
        raise StudentError(
            "The snapshot {name} is damaged and cannot be read.", name=path.name
        ) from None
    return Snapshot(
        step=step,
        attention=_under("attention/", tensors),
        probabilities=tensors.get("predictions/probabilities"),
        ids=tensors.get("predictions/ids"),
        confidence=tensors.get("predictions/confidence"),
        tokens=tokens,
        texts=texts,
        positions=_under("positions/", tensors),
        embeddings=_under("embeddings/", tensors),
    )


def kept(path: Path) -> Snapshot:
    """Return a snapshot, from memory where it was read before. Raises ValueError as ``read``."""
    try:
        facts = path.stat()
    except OSError:
        return read(path)
    key = ("snapshot", path, facts.st_mtime_ns, facts.st_size)
    return byte_cache.SHARED.get(key, lambda: read(path))


def steps(folder: Path) -> list[int]:
    """Return the steps of the snapshots of a run that can be read, ascending."""
    steps = []
    try:
        with os.scandir(folder / "snapshots") as entries:
            for entry in entries:
                stem, dot, kind = entry.name.partition(".")
                if not (dot and kind == "safetensors" and stem.isascii() and stem.isdigit()):
                    continue
                facts = entry.stat()
                if _is_whole(entry.path, facts.st_mtime_ns, facts.st_size):
                    steps.append(int(stem))
    except OSError:
        return sorted(steps)
    return sorted(steps)


@lru_cache(maxsize=4096)
def _is_whole(path: str, mtime_ns: int, size: int) -> bool:
    """Say whether the header of a safetensors file can be read and nothing behind it is cut off."""
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > size - 8:
                return False
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        end = max((item["data_offsets"][1] for item in header.values()), default=0)
        return bool(8 + length + end == size)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError):
        return False


def write_probe(folder: Path, values: Mapping[str, Any]) -> None:
    """Write the probe: ``kind``, ``items``, ``n_attended`` and, for pictures, ``images`` uint8.

    Raises OSError.
    """
    images = values.get("images")
    if images is not None:
        content = save({"images": np.ascontiguousarray(images, np.uint8)})
        write_bytes(folder / "probe.safetensors", content, lasting=True)
    words = {name: values.get(name) for name in ("kind", "items", "n_attended")}
    write_json(folder / "probe.json", words, lasting=True)


def read_probe(folder: Path) -> Probe:
    """Read the probe. Raises ValueError, in a sentence, where it is missing or damaged."""
    if not (folder / "probe.json").exists():
        raise StudentError("This run has no probe yet: it is written when the training starts.")
    values = read_json(folder / "probe.json") or {}
    kind, items = values.get("kind"), values.get("items")
    if kind not in {"text", "image", "caption"} or not isinstance(items, list):
        raise StudentError("The probe of this run is damaged and cannot be read.")
    images = None
    if kind != "text":
        try:
            with safe_open(folder / "probe.safetensors", framework="numpy") as file:
                images = file.get_tensor("images")
        except (OSError, SafetensorError):
            raise StudentError("The pictures of this run's probe are damaged or missing.") from None
    n_attended = values.get("n_attended")
    is_count = isinstance(n_attended, int) and 1 <= n_attended <= len(items)
    return Probe(kind, items, images, n_attended if is_count else None)


def _under(prefix: str, tensors: dict[str, Array]) -> dict[str, Array]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
