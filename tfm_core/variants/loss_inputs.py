"""What the loss is given: logits, or probabilities, which it takes for logits."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.sentences import N_
from tfm_core.variants.record import Phrased, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class LossInput(Phrased):
    """is_softmaxed: a softmax stands before the cross-entropy, which has one of its own."""

    is_softmaxed: bool


LOGITS = LossInput(
    name="logits",
    label=N_("Logits"),
    help=N_("The output layer's numbers as they are: the loss has its own softmax."),
    source="torch.nn.functional.cross_entropy",
    is_softmaxed=False,
    phrase=N_("loss of logits"),
)
PROBABILITIES = LossInput(
    name="probabilities",
    label=N_("Probabilities"),
    help=N_(
        "A softmax before the loss's own: gradients shrink, and of n classes even certainty leaves "
        "a loss of ln(e + n - 1) - 1. Every loss of the run is measured so. A mistake worth seeing."
    ),
    source="torch.nn.functional.cross_entropy, called on logits.softmax(-1)",
    is_softmaxed=True,
    phrase=N_("softmax before the loss"),
)

LOSS_INPUTS = Registry("input of the loss", LOGITS, PROBABILITIES)
