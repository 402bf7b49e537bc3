"""A model as a tree of parts, in the order of the forward pass; torch-free.

``anatomy(config, shape)`` describes exactly one model. What is shown, counted or named of an
architecture is a loop over its parts: parameters, multiply-accumulates, memory, attentions.
"""

from __future__ import annotations

from tfm_core.anatomy.anatomy import Anatomy, Lengths, anatomy
from tfm_core.anatomy.formula import Formula, formula
from tfm_core.anatomy.part import (
    Attention,
    Parameter,
    Part,
    Saved,
    Sublayer,
    Tensor,
    sublayers,
)
from tfm_core.anatomy.stacks import (
    AttentionPlan,
    StackName,
    StackPlan,
    Tokens,
    attentions,
    stacks,
)

__all__ = [
    "Anatomy",
    "Attention",
    "AttentionPlan",
    "Formula",
    "Lengths",
    "Parameter",
    "Part",
    "Saved",
    "StackName",
    "StackPlan",
    "Sublayer",
    "Tensor",
    "Tokens",
    "anatomy",
    "attentions",
    "formula",
    "stacks",
    "sublayers",
]
