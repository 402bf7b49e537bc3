"""Whether a norm stands behind the last block of a stack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfm_core.sentences import N_
from tfm_core.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalNorm(Variant):
    """stands: whether it is there, from whether the blocks are pre-norm."""

    stands: Callable[[bool], bool]


PRE_NORM = FinalNorm(
    name="pre-norm",
    label=N_("After pre-norm blocks"),
    help=N_("Usual: the output of pre-norm blocks is not normalised."),
    source="Xiong et al. 2020; Radford et al. 2019",
    stands=lambda norm_first: norm_first,
)
ALWAYS = FinalNorm(
    name="always",
    label=N_("Always"),
    help=N_("Also after post-norm blocks, as in torch.nn.Transformer."),
    source="torch.nn.Transformer",
    stands=lambda norm_first: True,
)
NEVER = FinalNorm(
    name="never",
    label=N_("Never"),
    help=N_("Not even after pre-norm blocks: their sums are the output."),
    source="study notebooks",
    stands=lambda norm_first: False,
)

FINAL_NORMS = Registry("final norm", PRE_NORM, ALWAYS, NEVER)
