"""Learning rates that are known to work, and one to try where the loss was lost."""

from __future__ import annotations

from tfm_core.config import Experiment, TrainingConfig
from tfm_core.facts.nearest_preset import nearest_preset
from tfm_core.variants.optimisers import OPTIMISERS

_WITH_MOMENTUM = 0.1
"""Of SGD with momentum, whose steps are as long as the gradients: a tenth, as is usual for it."""


def usual_rate(experiment: Experiment) -> float:
    """Return the learning rate of the most similar preset, or the optimiser's usual one.

    Muon learns at several times the rate of Adam and AdamW: what a preset learns with by Muon says
    nothing of theirs.
    """
    learned, own = nearest_preset(experiment).experiment.training, experiment.training
    if OPTIMISERS[own.optimizer].is_scale_free != OPTIMISERS[learned.optimizer].is_scale_free:
        return _WITH_MOMENTUM
    if learned.optimizer == "muon" != own.optimizer:
        return float(TrainingConfig.model_fields["learning_rate"].default)
    return learned.learning_rate


def calmer_rate(experiment: Experiment) -> float:
    """Return a rate to try where a training diverged: the usual one, or else a tenth of its own."""
    usual, own = usual_rate(experiment), experiment.training.learning_rate
    return usual if own > 2 * usual else own / 10
