"""The weights of a small run at some of the steps of its snapshots: how it came to answer.

One safetensors file a set, half precision, numpy only; they are to look back with, not to train
further from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from tfm_core.probe.types import Array
from tfm_core.reading import Unreadable, open_tensors
from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.runs.record import snapshots
from tfm_core.sentences import StudentError

FOLDER = "weights"
_MAX = 2**26
"""Bytes of one set, which may have been written by anybody."""


def weights_path(folder: Path, step: int) -> Path:
    """Return where the weights of a step lie in a run's folder."""
    return folder / FOLDER / f"{step:08d}.safetensors"


def write(folder: Path, step: int, weights: Mapping[str, Array]) -> Path:
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


def steps(folder: Path) -> list[int]:
    """Return the steps with readable weights, ascending."""
    return snapshots.steps_in(folder / FOLDER)


def read(folder: Path, step: int) -> dict[str, Array]:
    """Return the weights of a step by name. Raises ValueError, in a sentence."""
    path = weights_path(folder, step)
    try:
        with open_tensors(path) as content:
            if path.stat().st_size > _MAX:
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
        raise StudentError("The weights {name} are not finite numbers.", name=path.name)
    return tensors
