"""The number formats of the arithmetic; weights stay in fp32 (Micikevicius et al. 2018).

bf16 has the range of fp32 and 8 bits of precision; fp16 has 11 bits and a small range, so its loss
is scaled up and the gradients down.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.choices.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision(Variant):
    """autocast: torch's name of the type in which matrix products run, None where that is fp32.

    scales_loss: whether small gradients would become zero without loss scaling. n_bytes: of one
    activation. tolerance: the largest share of the largest output by which rounding may move one,
    over a few layers.
    """

    autocast: str | None
    scales_loss: bool
    n_bytes: int
    tolerance: float
    is_for_gpus: bool


FP32 = Precision(
    name="fp32",
    source="IEEE 754",
    autocast=None,
    scales_loss=False,
    n_bytes=4,
    tolerance=0.0,
    is_for_gpus=False,
)
BF16 = Precision(
    name="bf16",
    source="Kalamkar et al. 2019",
    autocast="bfloat16",
    scales_loss=False,
    n_bytes=2,
    tolerance=0.1,
    is_for_gpus=False,
)
FP16 = Precision(
    name="fp16",
    source="Micikevicius et al. 2018",
    autocast="float16",
    scales_loss=True,
    n_bytes=2,
    tolerance=0.02,
    is_for_gpus=True,
)

PRECISIONS = Registry("precision", FP32, BF16, FP16)
