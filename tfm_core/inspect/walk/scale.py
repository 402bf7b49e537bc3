"""A mistake worth showing: scores divided by sqrt(d_model), or by nothing, not by sqrt(d_head).

It runs and it trains, only every softmax is flatter, or sharper, than it was meant to be. How flat
is measured by the entropy of a row in bits: 0 when one key gets everything, log2(K) when all get
the same.
"""

from __future__ import annotations

import math

import pandas as pd
from torch import Tensor

from tfm_core.choices.mistakes import SQRT_D_MODEL
from tfm_core.choices.variants.forms import SCALES
from tfm_core.inspect.tables import Column, Columns
from tfm_core.inspect.walk.forward import Subject
from tfm_core.sentences import N_

BITS = Columns(
    token=Column(N_("query token"), axis={"tickangle": -45}),
    value=Column(N_("entropy (bits)"), ".4f", {"rangemode": "tozero"}),
)


def scales(
    subject: Subject, module: str, example: int, head: int
) -> tuple[str, bool, pd.DataFrame]:
    """Return what the wrong scale, or none, does to the weights of one head of an attention.

    The mistake, a name of SCALES: the model's own where that is wrong; whether the model makes it;
    token, and the entropy of its weights in bits: the most that there could be with the keys that
    it may attend to, with the wrong and with the right scale.
    """
    scores = subject.cache[f"{module}.scores"]  # (B, H, Q, K), divided as the model does it
    mask = subject.cache.get(f"{module}.mask")
    sizes, scale = subject.anatomy.sizes, SCALES[subject.anatomy.attentions[0].scale]
    rows = scores[example, head]
    bias = subject.cache.get(f"{module}.bias")
    penalty = 0.0 if bias is None else bias[head]
    own = 1.0 if scale.width is None else math.sqrt(sizes[scale.width])
    root, is_right = math.sqrt(sizes["d_head"]), scale.width == "d_head"
    if is_right:
        mistake, right = SQRT_D_MODEL.name, rows
        wrong = (rows - penalty) * (root / math.sqrt(sizes["d_model"])) + penalty
    else:
        mistake, wrong = scale.name, rows
        right = (rows - penalty) * (own / root) + penalty
    allowed = None if mask is None else mask.expand_as(scores)[example, head]
    right_weights, wrong_weights = _softmax(right, allowed), _softmax(wrong, allowed)
    n_keys = rows.new_full((rows.size(0),), rows.size(1)) if allowed is None else allowed.sum(-1)
    most = n_keys.clamp(min=1).float().log2()
    bits = {"most": most, "wrong": entropy(wrong_weights), "right": entropy(right_weights)}
    columns = {name: one.numpy() for name, one in bits.items()}
    return mistake, not is_right, BITS.table({"token": range(len(most)), **columns})


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy in bits of the rows of (Q, K): how many keys they share out among."""
    from torch.special import entr

    bits: Tensor = entr(weights).sum(-1) / math.log(2)
    return bits


def _softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    from tfm_core.layers.attention import masked_softmax

    if allowed is not None:
        scores = scores.masked_fill(~allowed, float(scores.new_tensor(-1e30)))
    return masked_softmax(scores, allowed)
