"""How long the gradient of each layer is: what tells a signal that explodes or dies on its way.

The norm of the whole gradient, which every step reports, hides both: one layer can have all of it
(Pascanu et al. 2013). So it is taken apart at a few steps, by the blocks of the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

_PART = re.compile(r"(?:encoder|decoder)\.\w+(?:\.\d+)?|\w+")


def part_of(name: str) -> str:
    """Return the part of the model that a parameter is of: a block, or what stands beside them.

    ``decoder.layers.0.self_attention.q.weight`` is of ``decoder.layers.0``.
    """
    found = _PART.match(name)
    assert found is not None
    return found[0]


def gradient_norms(model: nn.Module, whole: float, limit: float | None) -> dict[str, float]:
    """Return the norm of the gradient of each part, in the model's order, as before clipping.

    whole: the norm of all, before it was clipped to ``limit``; None where nothing clips.
    """
    by_part: dict[str, list[Tensor]] = {}
    for name, gradient in _gradients(model.named_parameters()):
        by_part.setdefault(part_of(name), []).append(gradient)
    if not by_part:
        return {}
    norms = torch.stack([torch.nn.utils.get_total_norm(some) for some in by_part.values()])
    longer = max(1.0, whole / limit) if limit else 1.0
    return dict(zip(by_part, (norms.float() * longer).tolist(), strict=True))


def _gradients(parameters: Iterable[tuple[str, nn.Parameter]]) -> Iterator[tuple[str, Tensor]]:
    for name, parameter in parameters:
        if parameter.grad is not None:
            yield name, parameter.grad
