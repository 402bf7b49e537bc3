"""Attention rollout: how much of each input reaches each output through all layers at once.

Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3: the residual
connection is half of every step, so each layer counts as (A + I) / 2, and layers multiply. In a
model without residuals a layer counts as A alone. numpy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.sentences import StudentError

Floats = npt.NDArray[np.floating[Any]]


def rollout(attention: Sequence[Floats], *, has_residual: bool = True) -> Floats:
    """Return (T, T): of each output token the shares of the input tokens, rows sum to 1.

    attention: one (H, T, T) a layer, from the input up; heads are averaged. Raises ValueError
    without layers, and for attention from one sequence to another.
    """
    reached: Floats = rollout_by_layer(attention, has_residual=has_residual)[-1]
    return reached


def rollout_by_layer(attention: Sequence[Floats], *, has_residual: bool = True) -> Floats:
    """Return (L, T, T): the rollout up to each layer. Arguments and errors as for ``rollout``."""
    if not len(attention):
        raise StudentError("Rollout needs at least one attention layer.")
    reached: list[Floats] = []
    for heads in attention:
        if heads.ndim != 3 or heads.shape[1] != heads.shape[2]:
            raise StudentError(
                "Rollout needs self-attention, (H, T, T), not {shape}.",
                shape=heads.shape,
            )
        mean = np.asarray(heads, np.float64).mean(0)
        step = with_residual(mean) if has_residual else mean
        reached.append(step @ reached[-1] if reached else step)
    return np.stack(reached)


def with_residual(attention: Floats) -> Floats:
    """Return (A + I) / 2 with rows that sum to 1; a row of zeros keeps to itself. (T, T)."""
    step = (attention + np.eye(len(attention))) / 2
    normalised: Floats = step / step.sum(-1, keepdims=True)
    return normalised


def to_patches(tokens: Floats, *, has_cls: bool) -> Floats:
    """Return (side, side): what the classifier gets from each patch.

    tokens: (T, T), row = output token. It reads the CLS token's row, or the mean of all rows; the
    CLS token's own column stands nowhere in the picture and is left out.
    """
    row = tokens[0, 1:] if has_cls else tokens.mean(0)
    side = round(float(np.sqrt(len(row))))
    if side**2 != len(row):
        raise StudentError("{n_row} patches do not form a square.", n_row=len(row))
    return np.asarray(row).reshape(side, side)
