"""What is wrong about the loss, in training, while the model is as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake
from tfm_core.sentences import N_

if TYPE_CHECKING:
    from torch import Tensor


def _probabilities(logits: Tensor) -> Tensor:
    return logits.softmax(-1)


SOFTMAX_BEFORE_LOSS = Mistake(
    name="softmax-before-loss",
    label=N_("A softmax before the cross-entropy"),
    short=N_("loss of probabilities"),
    help=N_(
        "A softmax before the loss's own: gradients shrink, and of n classes even certainty leaves "
        "a loss of ln(e + n - 1) - 1. Every loss of the run is measured so."
    ),
    source="torch.nn.functional.cross_entropy, called on logits.softmax(-1)",
    place="training",
    right="F.cross_entropy(logits, targets)",
    wrong="F.cross_entropy(logits.softmax(-1), targets)  # it takes logits",
    loss_input=_probabilities,
    loss_code="logits.softmax(-1)",
    means=N_(
        "Cross-entropy has a softmax of its own. Given probabilities it takes them for logits: "
        "gradients shrink, and the loss can't come near 0."
    ),
    probe="gradients",
)
