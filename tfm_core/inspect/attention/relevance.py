"""Gradient-weighted relevance: which tokens speak for one class, not just which are looked at.

Chefer et al. 2021, "Generic Attention-model Explainability", equations 5 and 6: every head's map is
weighted by the gradient of the class score, what speaks against the class is cut off, heads are
averaged, and relevance is passed on through the residual connection: R <- R + A R. Without one it
is passed on by attention alone: R <- A R.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tfm_core.probe.capture import capture


def relevance(
    model: nn.Module, images: Tensor, target: int, *, has_residual: bool = True
) -> Tensor:
    """Return (T, T): of each output token the relevance of the input tokens for class ``target``.

    images: (1, C, height, width), normalised as the model reads them; the row to read is that of
    the CLS token, or the mean. Parameters get no gradients.
    """
    return relevance_of(model, (images,), target, has_residual=has_residual)


def relevance_of(
    model: nn.Module, inputs: tuple[Tensor, ...], target: int, *, has_residual: bool = True
) -> Tensor:
    """Return (T, T) as ``relevance`` does, for any model that gives one answer.

    inputs: one example; target: which of the scores, the last axis of the logits, is explained.
    """
    with capture(model, only={"weights"}, with_grad=True) as cache:
        logits: Tensor = model(*inputs)
    layers = list(cache.of("weights").values())
    gradients = torch.autograd.grad(logits.flatten()[target], layers)
    return accumulated(
        [weights[0].detach() for weights in layers],
        [gradient[0] for gradient in gradients],
        has_residual=has_residual,
    )


def accumulated(
    attention: Sequence[Tensor], gradients: Sequence[Tensor], *, has_residual: bool = True
) -> Tensor:
    """Return (T, T): relevance from the maps and their gradients, each (H, T, T), layer by layer.

    Starts from the identity: before any layer, every token is about itself.
    """
    first = attention[0]
    relevance = torch.eye(first.size(-1), dtype=first.dtype, device=first.device)
    for weights, gradient in zip(attention, gradients, strict=True):
        passed_on = weighted(weights, gradient) @ relevance
        relevance = relevance + passed_on if has_residual else passed_on
    return relevance


def weighted(weights: Tensor, gradient: Tensor) -> Tensor:
    """Return (T, T): mean over heads of the positive part of gradient times weight, (H, T, T)."""
    return (gradient * weights).clamp(min=0).mean(0)
