"""Mistakes in the loss; the model itself is healthy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfm_core.mistakes.mistake import Mistake
from tfm_core.sentences import N_, Paragraph

if TYPE_CHECKING:
    from torch import Tensor


def _probabilities(logits: Tensor) -> Tensor:
    return logits.softmax(-1)


def _cut_off(logits: Tensor) -> Tensor:
    """Return the predicted classes, one-hot, as a new leaf: no gradient reaches the logits."""
    from torch import nn

    return nn.functional.one_hot(logits.argmax(-1), logits.size(-1)).float().requires_grad_()


def _with_scaled_gradients(training: Any) -> str | None:
    if training.precision != "fp16":
        return None
    return Paragraph("mistakes/argmax-with-fp16")


def _unshifted(ids: Tensor) -> Tensor:
    return ids[:, :-1]


SOFTMAX_BEFORE_LOSS = Mistake(
    name="softmax-before-loss",
    label=N_("Softmax before the cross-entropy"),
    short=N_("loss on probabilities"),
    help=Paragraph("mistakes/softmax-before-loss"),
    source="torch.nn.functional.cross_entropy, called on logits.softmax(-1)",
    place="training",
    right="F.cross_entropy(logits, targets)",
    wrong="F.cross_entropy(logits.softmax(-1), targets)  # it takes logits",
    loss_input=_probabilities,
    loss_code="logits.softmax(-1)",
    probe="gradients",
)
ARGMAX_BEFORE_LOSS = Mistake(
    name="argmax-before-loss",
    label=N_("argmax before the loss, silenced with requires_grad_()"),
    short=N_("argmax before the loss"),
    help=Paragraph("mistakes/argmax-before-loss"),
    source="torch.Tensor.requires_grad_, called on logits.argmax(-1).float()",
    place="training",
    right="loss = F.cross_entropy(logits, targets)",
    wrong="predicted = logits.argmax(-1).float().requires_grad_()\n"
    "loss = F.cross_entropy(predicted, targets.float())",
    loss_input=_cut_off,
    loss_code="F.one_hot(logits.argmax(-1), logits.size(-1)).float().requires_grad_()",
    refusal=_with_scaled_gradients,
    probe="gradients",
)
TARGET_NOT_SHIFTED = Mistake(
    name="target-not-shifted",
    label=N_("Target used as input and label, not shifted"),
    short=N_("target not shifted"),
    help=Paragraph("mistakes/target-not-shifted"),
    source="Vaswani et al. 2017, section 3.1, without the offset by one position",
    place="training",
    right="loss = F.cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:])",
    wrong="loss = F.cross_entropy(model(src, tgt[:, :-1]), tgt[:, :-1])",
    labels=_unshifted,
    labels_code="tgt[:, :-1]",
    probe="gradients",
)
