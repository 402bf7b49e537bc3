"""The one place that imports torchvision, so that it also works with a CPU-only torch on Linux.

PyPI's torchvision is built against CUDA; with a CPU-only torch its operators don't load, and its
import fails where it registers shapes for two of them. Its datasets, transforms and reference
models need neither, so their schemas are declared first where they are missing. Everybody else
writes ``from tfm_core.data.torchvision_import import torchvision``.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path

import torch

_SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


def _load_operators() -> None:
    """Load torchvision's compiled operators if this torch can; it will not load them twice."""
    package = importlib.util.find_spec("torchvision")
    if package is None or package.origin is None:
        return
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        library = Path(package.origin).parent / f"_C{suffix}"
        if library.is_file():
            try:
                torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]
            except OSError:  # built for another kind of torch
                return


_load_operators()
MISSING = tuple(name for name in _SCHEMAS if not hasattr(torch.ops.torchvision, name))
"""Operators that are declared and no more: this torchvision is built for another torch."""

# Kept for the life of the process: the schemas vanish with the object that declared them.
_library: torch.library.Library | None = None
if MISSING:
    _library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for _name in MISSING:
        _library.define(_SCHEMAS[_name])  # type: ignore[no-untyped-call]

import torchvision  # noqa: E402  the schemas must be there first

__all__ = ["MISSING", "torchvision"]
