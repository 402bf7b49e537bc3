"""Data on a device: a frozen record whose tensors and parts lie there, and what each batch adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor

from tfm_core.data.vocabulary import Vocabulary
from tfm_core.sentences import StudentError


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


class Examples(DeviceRecord, ABC):
    """Examples of one kind.

    tgt: int64 (N, T), "<bos> ... <eos>", padded; none where classes are answered.
    """

    if TYPE_CHECKING:

        @property
        def tgt(self) -> Tensor:
            """What is answered."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of examples."""

    def pictures(self, rows: Tensor | slice) -> Tensor | None:
        """Return some pictures, uint8 (B, C, H, W); None where words are read."""
        return None


class Data(DeviceRecord, ABC):
    """Examples in three splits, on one device, and what is answered to them, whatever their kind.

    Here: tokens; where classes are answered, methods say otherwise. remark: what a person should
    know of their files. large: fields that may stay with the CPU.
    """

    remark: str | None = None
    large: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:  # fields of each kind

        @property
        def train(self) -> Examples:
            """What is learned from."""

        @property
        def validation(self) -> Examples:
            """Other examples, measured during training."""

        @property
        def test(self) -> Examples:
            """Other examples again, measured once at the end."""

        @property
        def vocabulary(self) -> Vocabulary:
            """Every token that is answered."""

    @property
    def names(self) -> tuple[str, ...]:
        """The classes or tokens that are answered, by number."""
        return self.vocabulary.names

    @property
    def learned(self) -> Tensor:
        """Every answer of the training part, padding too, in any shape."""
        return self.train.tgt[:, 1:]

    @property
    def n_answers(self) -> int:
        """Answers to one validation example, at most."""
        return self.validation.tgt.size(1)

    def truth(self, rows: slice, length: int) -> tuple[Tensor, Tensor]:
        """Return true answers of the validation part (B, T), and bool (B, T): which count.

        length: of what a decoder reads.
        """
        targets = self.validation.tgt[rows, 1 : 1 + length]
        return targets, targets != self.vocabulary.specials.pad

    @abstractmethod
    def shown(self, indices: Tensor) -> tuple[list[str], list[str]]:
        """Return what is read and what is answered of training examples, as a person reads it."""


D = TypeVar("D", bound=Data)


def data_as(data: Data, kind: type[D]) -> D:
    """Return data that must be of a kind. Raises ValueError otherwise."""
    if isinstance(data, kind):
        return data
    raise StudentError(
        "This needs {needed}, not {found}.", found=type(data).__name__, needed=kind.__name__
    )


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
