"""What the scores of an attention are divided by before the softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfm_core.sentences import N_
from tfm_core.variants.record import Phrased, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale(Phrased):
    """width: the setting whose square root divides the scores, None where nothing does."""

    width: Literal["d_head", "d_model"] | None


SQRT_D_HEAD = Scale(
    name="sqrt-d-head",
    label=N_("√d_head"),
    help=N_("Scores keep a variance near 1, whatever the width of a head, as in the paper."),
    source="Vaswani et al. 2017, section 3.2.1",
    width="d_head",
    phrase=N_("scores over √d_head"),
)
UNSCALED = Scale(
    name="none",
    label=N_("Nothing"),
    help=N_(
        "Scores grow with the width of a head, the softmax puts nearly all on one key, and its "
        "gradient vanishes: a mistake worth seeing."
    ),
    source="Vaswani et al. 2017, section 3.2.1, without the division",
    width=None,
    phrase=N_("scores not scaled"),
)
SQRT_D_MODEL = Scale(
    name="sqrt-d-model",
    label=N_("√d_model"),
    help=N_(
        "The width of all heads in place of that of one: scores shrink by √n_heads and attention "
        "starts out flatter. A mistake worth seeing; with one head there is none."
    ),
    source="Vaswani et al. 2017, section 3.2.1, with d_model for d_k",
    width="d_model",
    phrase=N_("scores over √d_model"),
)

SCALES = Registry("scale of scores", SQRT_D_HEAD, UNSCALED, SQRT_D_MODEL)
