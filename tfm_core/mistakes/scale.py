"""Scores that are divided by the wrong number, or not at all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake, attentions
from tfm_core.sentences import N_
from tfm_core.variants.forms import Scale

if TYPE_CHECKING:
    from torch import nn


def _leave_undivided(model: nn.Module) -> None:
    for attention in attentions(model):
        attention.divisor = 1.0


def _divide_by_d_model(model: nn.Module) -> None:
    for attention in attentions(model):
        attention.divisor = math.sqrt(attention.d_model)


_UNSCALED = Scale(
    name="none", source="Vaswani et al. 2017, section 3.2.1, without the division", width=None
)
SQRT_D_MODEL = Scale(
    name="sqrt-d-model",
    source="Vaswani et al. 2017, section 3.2.1, with d_model for d_k",
    width="d_model",
)

NO_SCALE = Mistake(
    name="no-scale",
    label=N_("Scores not divided by √d_head"),
    short=N_("not divided"),
    help=N_(
        "Scores grow with the width of a head, the softmax puts nearly all on one key, and its "
        "gradient vanishes."
    ),
    source=_UNSCALED.source,
    place="block",
    apply=_leave_undivided,
    form=_UNSCALED,
    means=N_(
        "Scores were √d_head times too large: the softmax put nearly all on one key, and "
        "hardly any gradient came through it."
    ),
    probe="attention",
)
SCALED_BY_D_MODEL = Mistake(
    name="scaled-by-d-model",
    label=N_("Scores divided by √d_model"),
    short=N_("divided by √d_model"),
    help=N_(
        "The width of all heads in place of that of one: scores shrink by √n_heads and attention "
        "starts out flatter. With one head there is no difference."
    ),
    source=SQRT_D_MODEL.source,
    place="block",
    apply=_divide_by_d_model,
    form=SQRT_D_MODEL,
    means=N_("The width of all heads in the place of one's: attention began √n_heads flatter."),
    probe="attention",
)
