"""The matrices of an attention: those of the paper, and what study notebooks leave out of them."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.sentences import N_
from tfm_core.variants.record import Phrased, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections(Phrased):
    """has_bias: whether they have biases where the model's linear layers have.

    has_output: whether a matrix mixes what the heads found. is_sliced: whether each head maps only
    its own slice of the vector, by d_head x d_head matrices.
    """

    has_bias: bool
    has_output: bool
    is_sliced: bool


FULL = Projections(
    name="full",
    label=N_("Full"),
    help=N_("Query, key, value and output matrices of d_model x d_model, as in the paper."),
    source="Vaswani et al. 2017, section 3.2.2",
    has_bias=True,
    has_output=True,
    is_sliced=False,
    phrase=N_("full matrices"),
)
UNBIASED = Projections(
    name="unbiased",
    label=N_("Full, without biases"),
    help=N_("The same four matrices and nothing added: the scores hardly miss it."),
    source="Vaswani et al. 2017, section 3.2.2",
    has_bias=False,
    has_output=True,
    is_sliced=False,
    phrase=N_("matrices without biases"),
)
NO_OUTPUT = Projections(
    name="no-output",
    label=N_("No output matrix"),
    help=N_("The heads are put side by side and never mixed: a mistake worth seeing."),
    source="Vaswani et al. 2017, section 3.2.2, without W_O",
    has_bias=True,
    has_output=False,
    is_sliced=False,
    phrase=N_("no output matrix"),
)
SLICED = Projections(
    name="sliced",
    label=N_("Heads on slices"),
    help=N_(
        "Each head sees only its own slice of the vector, by d_head x d_head matrices, and nothing "
        "mixes the heads: few parameters, and a mistake worth seeing."
    ),
    source="Vaswani et al. 2017, section 3.2.2, with block-diagonal matrices and without W_O",
    has_bias=True,
    has_output=False,
    is_sliced=True,
    phrase=N_("heads on slices"),
)

PROJECTIONS = Registry("projections", FULL, UNBIASED, NO_OUTPUT, SLICED)
