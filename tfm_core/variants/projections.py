"""The matrices of an attention."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.variants.record import Named, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections(Named):
    """has_output: whether a matrix mixes the heads' results.

    is_sliced: whether each head maps only its own slice of the vector, by d_head x d_head matrices.
    """

    has_output: bool
    is_sliced: bool


FULL = Projections(name="full", has_output=True, is_sliced=False)

PROJECTIONS = Registry("projections", FULL, others="tfm_core.mistakes:forms")
