"""What is wrong about the loss, in training, while the model is as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfm_core.mistakes.mistake import Mistake
from tfm_core.sentences import N_

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
    return N_(
        "Half precision checks the gradients before each step, and with argmax before the loss "
        "there are none: choose another precision, or leave out this mistake."
    )


def _unshifted(ids: Tensor) -> Tensor:
    return ids[:, :-1]


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
ARGMAX_BEFORE_LOSS = Mistake(
    name="argmax-before-loss",
    label=N_("argmax before the loss, silenced with requires_grad_()"),
    short=N_("argmax before the loss"),
    help=N_(
        "argmax has no gradient, and requires_grad_() makes its result a new leaf: backward() and "
        "step() run without an error, no weight gets a gradient, and nothing is learned."
    ),
    source="torch.Tensor.requires_grad_, called on logits.argmax(-1).float()",
    place="training",
    right="loss = F.cross_entropy(logits, targets)",
    wrong="predicted = logits.argmax(-1).float().requires_grad_()\n"
    "loss = F.mse_loss(predicted, targets.float())",
    loss_input=_cut_off,
    loss_code="F.one_hot(logits.argmax(-1), logits.size(-1)).float().requires_grad_()",
    refusal=_with_scaled_gradients,
    means=N_(
        "The loss got the predicted classes as a new leaf. Its gradient ended there: the grad of "
        "every weight is None, and no step changes anything."
    ),
    probe="gradients",
)
TARGET_NOT_SHIFTED = Mistake(
    name="target-not-shifted",
    label=N_("The target is input and label, without a shift"),
    short=N_("target not shifted"),
    help=N_(
        "Each token is to be predicted from itself: the causal mask allows the diagonal, so the "
        "model copies what it reads. The curves look perfect, and it can't write anything."
    ),
    source="Vaswani et al. 2017, section 3.1, without the offset by one position",
    place="training",
    right="loss = F.cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:])",
    wrong="loss = F.cross_entropy(model(src, tgt[:, :-1]), tgt[:, :-1])",
    labels=_unshifted,
    labels_code="tgt[:, :-1]",
    means=N_(
        "Input and label were the same tokens. The model learned to copy the token that it reads, "
        "and repeats <bos> where it must write by itself."
    ),
    probe="gradients",
)
