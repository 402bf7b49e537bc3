"""Data on a device: a frozen record whose tensors and parts lie there, and what each batch adds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class DeviceRecord:
    """A record whose tensors, and records inside it, lie on one device."""

    def to(self, device: torch.device | str, *, besides: Collection[str] = ()) -> Self:
        """Return the record on a device. besides: names of fields that stay where they are."""
        parts: dict[str, Any] = {
            part.name: getattr(self, part.name) for part in fields(self) if part.name not in besides
        }
        on_device = {name: part.to(device) for name, part in parts.items() if hasattr(part, "to")}
        return replace(self, **on_device)


def size_of(record: object) -> int:
    """Return the bytes of the tensors in a dataclass and in its parts; of a tensor its own."""
    if isinstance(record, Tensor):
        return record.nbytes
    if not is_dataclass(record):
        return 0
    return sum(size_of(getattr(record, part.name)) for part in fields(record))


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a CPU tensor on a device, without waiting for the work queued there.

    From memory that is not pinned, CUDA would copy only once that work is done.
    """
    pinned = (
        tensor.pin_memory() if device.type == "cuda" and tensor.device.type == "cpu" else tensor
    )
    return pinned.to(device, non_blocking=True)


def to_device_together(
    groups: Sequence[Sequence[Tensor]], device: torch.device
) -> list[tuple[Tensor, ...]]:
    """Return groups of CPU tensors on a device, with one copy for each dtype."""
    flat = [tensor for group in groups for tensor in group]
    on_device: dict[int, Tensor] = {}
    for kind in {tensor.dtype for tensor in flat}:
        some = [tensor for tensor in flat if tensor.dtype == kind]
        whole = to_device(torch.cat([tensor.flatten() for tensor in some]), device)
        parts = torch.split(whole, [tensor.numel() for tensor in some])
        on_device |= {
            id(tensor): part.view(tensor.shape) for tensor, part in zip(some, parts, strict=True)
        }
    return [tuple(on_device[id(tensor)] for tensor in group) for group in groups]


def take_rows(table: Tensor, rows: Tensor, indices: Tensor) -> Tensor:
    """Return rows of a table on the device of ``rows``, which are the same as ``indices``.

    indices: on the CPU, for a table that stays there because it does not fit on the device.
    """
    if table.device == rows.device:
        return table.index_select(0, rows)
    return to_device(table.index_select(0, indices), rows.device)


def normalised(images: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Return uint8 pictures (..., C, H, W) as float32 of mean 0 and deviation 1.

    mean, std: (C,), of pixels from 0 to 1.
    """
    values = images.to(torch.float32).div_(255)
    return values.sub_(mean[:, None, None]).div_(std[:, None, None])
