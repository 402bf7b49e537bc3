"""What the scores of an attention are divided by before the softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfm_core.variants.record import Named, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale(Named):
    """width: the setting whose square root divides the scores, None where nothing does."""

    source: str
    width: Literal["d_head", "d_model"] | None


SQRT_D_HEAD = Scale(name="sqrt-d-head", source="Vaswani et al. 2017, section 3.2.1", width="d_head")

SCALES = Registry("scale of scores", SQRT_D_HEAD, others="tfm_core.mistakes:forms")
