"""A softmax before the loss, which has one of its own: a mistake of training, not of a model."""

from __future__ import annotations

from tfm_core.mistakes.mistake import Mistake
from tfm_core.sentences import N_
from tfm_core.variants.loss_inputs import LOSS_INPUTS

SOFTMAX_BEFORE_LOSS = Mistake(
    name="softmax-before-loss",
    label=N_("A softmax before the cross-entropy"),
    help=LOSS_INPUTS["probabilities"].help,
    source=LOSS_INPUTS["probabilities"].source,
    settings={"training.loss_input": "probabilities"},
    apply=None,
    changes_attention_weights=False,
    means=N_(
        "Cross-entropy has a softmax of its own. Given probabilities it takes them for logits: "
        "gradients shrink, and the loss can't come near 0."
    ),
    probe="gradients",
)
