"""What a model attended to and predicted on the probe at a step, and a small model's weights then.

One safetensors file a snapshot and a set of weights, half precision, numpy only: reading one needs
no torch. The weights are to look back with, not to train further from.
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from tfm_core import byte_cache
from tfm_core.choices.config import Experiment
from tfm_core.probe.form import SnapshotForm, check_probe
from tfm_core.probe.types import Array, Probe, Snapshot
from tfm_core.reading import MAX_HEADER, Unreadable, json_of, object_of, open_tensors
from tfm_core.runs.disk.atomic import write_bytes, write_json
from tfm_core.sentences import StudentError

_NAME = re.compile(r"(\d{8}|[1-9]\d{8})\.safetensors", re.ASCII)
_STEP = re.compile(r"\d{1,9}", re.ASCII)
_MAX_PROBE = 2**24  # bytes


def snapshot_path(folder: Path, step: int) -> Path:
    """Return where the snapshot of a step lies in a run's folder."""
    return folder / "snapshots" / f"{step:08d}.safetensors"


def write_snapshot(folder: Path, snapshot: Snapshot) -> Path:
    """Write a snapshot into a run's folder and return its path. Raises OSError."""
    halves = ("attention", "positions", "embeddings", "routing")
    tensors: dict[str, Array] = {
        f"{part}/{name}": np.ascontiguousarray(value, np.float16)
        for part in halves
        for name, value in getattr(snapshot, part).items()
    }
    sources = _sources(snapshot.masks)
    for name in sorted(set(sources.values())):
        tensors[f"masks/{name}"] = np.ascontiguousarray(snapshot.masks[name], np.bool_)
    for module, vectors in snapshot.vectors.items():
        for name, value in vectors.items():
            tensors[f"vectors/{module}/{name}"] = np.asarray(value, np.float32, "C")
    for name, kind in _PREDICTIONS.items():
        part = getattr(snapshot, name)
        if part is not None:
            tensors[f"predictions/{name}"] = np.ascontiguousarray(part, kind)
    metadata = {"step": str(snapshot.step)}
    if sources:
        metadata["masks"] = json.dumps(sources)
    for name in ("texts", "tokens"):
        words = getattr(snapshot, name)
        if words is not None:
            metadata[name] = json.dumps(words, ensure_ascii=False)
    path = snapshot_path(folder, snapshot.step)
    path.parent.mkdir(exist_ok=True)
    write_bytes(path, save(tensors, metadata), lasting=True)
    return path


def _sources(masks: Mapping[str, Array]) -> dict[str, str]:
    """Return the module name under which each module's mask is stored: layers share masks."""
    sources: dict[str, str] = {}
    for name, mask in masks.items():
        equal = (source for source in sources.values() if np.array_equal(masks[source], mask))
        sources[name] = next(equal, name)
    return sources


_PREDICTIONS: dict[str, type] = {
    "probabilities": np.float16,
    "ids": np.int32,
    "confidence": np.float16,
}


def read_snapshot(path: Path, form: SnapshotForm | None = None) -> Snapshot:
    """Read a snapshot, and check that it is of a form, where one is given.

    Raises ValueError, in a sentence, where it is missing, damaged or of another experiment.
    """
    try:
        with open_tensors(path) as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        snapshot = _made(metadata, tensors)
        if snapshot_path(path.parent.parent, snapshot.step).name != path.name:
            raise Unreadable("it belongs to another step")
        if form is not None:
            form.check(snapshot)
    except FileNotFoundError:
        raise StudentError(
            "There is no snapshot of step {stem}.", stem=path.stem.lstrip("0") or "0"
        ) from None
    except Unreadable as error:
        raise StudentError(
            "The snapshot {name} is damaged ({why}).", name=path.name, why=error.sentence
        ) from None
    except (ValueError, KeyError, TypeError):
        raise StudentError("The snapshot {name} is damaged.", name=path.name) from None
    return snapshot


def _made(metadata: Mapping[str, str], tensors: dict[str, Array]) -> Snapshot:
    """Return a snapshot of what its file holds. Raises Unreadable, KeyError and ValueError."""
    for name, value in tensors.items():
        if (value.dtype.kind not in "fiu") != name.startswith("masks/"):
            raise Unreadable("{name} doesn't contain numbers", name=name)
    kept, sources = _under("masks/", tensors), json_of(metadata.get("masks", "{}"))
    if not isinstance(sources, dict):
        raise Unreadable("its masks have no names")
    if not _STEP.fullmatch(metadata["step"]):
        raise Unreadable("it has no step")
    vectors: dict[str, dict[str, Array]] = {}
    for name, value in _under("vectors/", tensors).items():
        module, _slash, part = name.rpartition("/")
        vectors.setdefault(module, {})[part] = value
    return Snapshot(
        step=int(metadata["step"]),
        attention=_under("attention/", tensors),
        probabilities=tensors.get("predictions/probabilities"),
        ids=tensors.get("predictions/ids"),
        confidence=tensors.get("predictions/confidence"),
        tokens=json_of(metadata["tokens"]) if "tokens" in metadata else None,
        texts=json_of(metadata["texts"]) if "texts" in metadata else None,
        positions=_under("positions/", tensors),
        embeddings=_under("embeddings/", tensors),
        routing=_under("routing/", tensors),
        vectors=vectors,
        masks={name: kept[source] for name, source in sources.items()},
    )


def cached_snapshot(path: Path, form: SnapshotForm) -> Snapshot:
    """Return a snapshot, from memory where it was read before. Raises as ``read_snapshot``."""
    try:
        facts = path.lstat()
    except OSError:
        return read_snapshot(path, form)
    snapshot = byte_cache.SHARED.get(
        ("snapshot", path, facts.st_mtime_ns, facts.st_size), lambda: read_snapshot(path, form)
    )
    try:
        form.check(snapshot)  # the probe may have changed since it was read
    except Unreadable:
        return read_snapshot(path, form)
    return snapshot


def snapshot_steps(folder: Path) -> list[int]:
    """Return the steps of the snapshots of a run that can be read, ascending."""
    return steps_in(folder / "snapshots")


def steps_in(folder: Path) -> list[int]:
    """Return the steps after which whole safetensors files of a folder are named, ascending."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if _NAME.fullmatch(entry.name)]
    except OSError:
        return []
    steps = []
    for entry in found:
        try:
            facts = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        is_plain = stat.S_ISREG(facts.st_mode)
        if is_plain and _is_whole(entry.path, facts.st_mtime_ns, facts.st_size):
            steps.append(int(entry.name.partition(".")[0]))
    return sorted(steps)


@lru_cache(maxsize=4096)
def _is_whole(path: str, mtime_ns: int, size: int) -> bool:
    """Return whether the header of a safetensors file can be read and nothing is cut off."""
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(size - 8, MAX_HEADER):
                return False
            header = json_of(file.read(length))
        header.pop("__metadata__", None)
        end = max((item["data_offsets"][1] for item in header.values()), default=0)
        return bool(8 + length + end == size)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return False


def write_probe(folder: Path, values: Mapping[str, Any]) -> None:
    """Write the probe: ``kind``, ``items``, ``n_attended`` and, for pictures, ``images`` uint8.

    Of classified pictures also ``mean`` and ``std``, see ``Probe``. Raises OSError.
    """
    images = values.get("images")
    if images is not None:
        content = save({"images": np.ascontiguousarray(images, np.uint8)})
        write_bytes(folder / "probe.safetensors", content, lasting=True)
    words = {name: values.get(name) for name in ("kind", "items", "n_attended")}
    words |= {name: values[name] for name in ("mean", "std") if values.get(name) is not None}
    write_json(folder / "probe.json", words, lasting=True)


def read_probe(folder: Path, experiment: Experiment) -> Probe:
    """Read the probe, and check that it is one of the experiment.

    Raises ValueError, in a sentence, where it is missing or damaged.
    """
    try:
        values = object_of(folder / "probe.json", most=_MAX_PROBE)
        kind, items = values.get("kind"), values.get("items")
        if not isinstance(kind, str) or not isinstance(items, list):
            raise Unreadable("probe.json holds no examples")
        images = None if kind == "text" else _read_images(folder)
        scale = values.get("mean"), values.get("std")
        probe = Probe(kind, items, images, values.get("n_attended"), *scale)
        check_probe(experiment, probe)
    except FileNotFoundError:
        raise StudentError("This run has no probe yet.") from None
    except Unreadable as error:
        raise StudentError(
            "The probe of this run is damaged ({why}).", why=error.sentence
        ) from None
    return probe


def _read_images(folder: Path) -> Array:
    path = folder / "probe.safetensors"
    try:
        with open_tensors(path) as file:
            images: Array = file.get_tensor("images")
    except (FileNotFoundError, Unreadable):
        raise Unreadable("its pictures cannot be read") from None
    return images


def _under(prefix: str, tensors: dict[str, Array]) -> dict[str, Array]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


WEIGHTS = "weights"
_MAX_WEIGHTS = 2**26
"""Bytes of one set, which may have been written by anybody."""


def weights_path(folder: Path, step: int) -> Path:
    """Return where the weights of a step lie in a run's folder."""
    return folder / WEIGHTS / f"{step:08d}.safetensors"


def write_weights(folder: Path, step: int, weights: Mapping[str, Array]) -> Path:
    """Write the weights of a step into a run's folder and return their path. Raises OSError."""
    with np.errstate(over="ignore"):  # what half precision cannot hold is not read again
        halves = {
            name: np.ascontiguousarray(value, np.float16 if value.dtype.kind == "f" else None)
            for name, value in weights.items()
        }
    path = weights_path(folder, step)
    path.parent.mkdir(exist_ok=True)
    write_bytes(path, save(halves, {"step": str(step)}))
    return path


def weight_steps(folder: Path) -> list[int]:
    """Return the steps with readable weights, ascending."""
    return steps_in(folder / WEIGHTS)


def read_weights(folder: Path, step: int) -> dict[str, Array]:
    """Return the weights of a step by name. Raises ValueError, in a sentence."""
    path = weights_path(folder, step)
    try:
        with open_tensors(path) as content:
            if path.stat().st_size > _MAX_WEIGHTS:
                raise Unreadable("the file is too large")
            if (content.metadata() or {}).get("step") != str(step):
                raise Unreadable("it belongs to another step")
            tensors = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise StudentError("No weights of step {step:,} were stored.", step=step) from None
    except Unreadable as error:
        raise StudentError(
            "The weights {name} are damaged ({why}).", name=path.name, why=error.sentence
        ) from None
    if not all(
        value.dtype.kind in "fiu" and np.isfinite(value).all() for value in tensors.values()
    ):
        raise StudentError("The weights {name} aren't finite numbers.", name=path.name)
    return tensors
