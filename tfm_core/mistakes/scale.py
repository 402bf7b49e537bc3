"""Scores that are divided by the wrong number, or not at all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake, attentions
from tfm_core.sentences import N_
from tfm_core.variants.scales import SCALES

if TYPE_CHECKING:
    from torch import nn


def _leave_undivided(model: nn.Module) -> None:
    for attention in attentions(model):
        attention.divisor = 1.0


def _divide_by_d_model(model: nn.Module) -> None:
    for attention in attentions(model):
        attention.divisor = math.sqrt(attention.d_model)


NO_SCALE = Mistake(
    name="no-scale",
    label=N_("Scores not divided by √d_head"),
    help=SCALES["none"].help,
    source=SCALES["none"].source,
    settings={"model.scale": "none"},
    apply=_leave_undivided,
    changes_attention_weights=False,
    means=N_(
        "Scores were √d_head times too large: the softmax put nearly all on one key, and "
        "hardly any gradient came through it."
    ),
    probe="attention",
)
SCALED_BY_D_MODEL = Mistake(
    name="scaled-by-d-model",
    label=N_("Scores divided by √d_model"),
    help=SCALES["sqrt-d-model"].help,
    source=SCALES["sqrt-d-model"].source,
    settings={"model.scale": "sqrt-d-model"},
    apply=_divide_by_d_model,
    changes_attention_weights=False,
    means=N_("The width of all heads in the place of one's: attention began √n_heads flatter."),
    probe="attention",
)
