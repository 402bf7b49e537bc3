"""How many bytes the forward pass keeps for the backward pass: counted, not estimated.

Autograd calls a hook for every tensor that it saves (``torch.autograd.graph.saved_tensors_hooks``);
a storage that is saved several times, or is a parameter's, counts once or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


@dataclass
class SavedBytes:
    """Counts while ``pack`` is the hook in force."""

    storages: dict[int, int] = field(default_factory=dict)
    _kept: list[Tensor] = field(default_factory=list)  # so that no storage's address comes back

    def pack(self, tensor: Tensor) -> Tensor:
        """Count a tensor as it is saved."""
        if not isinstance(tensor, nn.Parameter) and not _is_weight(tensor):
            storage = tensor.untyped_storage()
            self.storages[storage.data_ptr()] = storage.nbytes()
            self._kept.append(tensor)
        return tensor

    @property
    def total(self) -> int:
        """Bytes of all storages."""
        return sum(self.storages.values())


def _is_weight(tensor: Tensor) -> bool:
    """Say whether a tensor is a view of a parameter, such as its transpose."""
    base = tensor._base
    return isinstance(base, nn.Parameter)


def saved_bytes(call: Callable[[], object]) -> int:
    """Return the bytes that autograd saves in a call, without the weights themselves."""
    counter = SavedBytes()
    with torch.autograd.graph.saved_tensors_hooks(counter.pack, lambda tensor: tensor):
        call()
    return counter.total
