"""Data on a device: a frozen record whose tensors and parts lie there, and what each batch adds."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record = TypeVar("Record", bound=DataclassInstance)


def moved(record: Record, device: torch.device | str) -> Record:
    """Return a dataclass with every field that can be moved on a device; the others stay."""
    parts: dict[str, Any] = {part.name: getattr(record, part.name) for part in fields(record)}
    there = {name: part.to(device) for name, part in parts.items() if hasattr(part, "to")}
    return replace(record, **there)


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor of the CPU on a device, without waiting for what the device still has to do.

    Of memory that may be moved meanwhile, CUDA would make a copy first, once all else is done.
    """
    held = tensor.pin_memory() if device.type == "cuda" else tensor
    return held.to(device, non_blocking=True)


def normalised(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Return uint8 pictures (..., C, H, W) as float32 of mean 0 and deviation 1.

    mean, std: (C,), of pixels from 0 to 1.
    """
    values = images.to(torch.float32).div_(255)
    return values.sub_(mean[:, None, None]).div_(std[:, None, None])
