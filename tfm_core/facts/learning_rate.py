"""Learning rates that are known to work, and one to try where the loss was lost."""

from __future__ import annotations

from tfm_core.config import Experiment
from tfm_core.facts.nearest_preset import nearest_preset
from tfm_core.variants.optimisers import OPTIMISERS


def usual_rate(experiment: Experiment) -> float:
    """Return the learning rate of the most similar preset, or the optimiser's usual one.

    What a preset learns with says nothing of an optimiser that learns at other rates than its own:
    Muon's are several times those of Adam and AdamW.
    """
    learned, own = nearest_preset(experiment).experiment.training, experiment.training
    usual = OPTIMISERS[own.optimizer].usual_rate
    if usual is None or usual == OPTIMISERS[learned.optimizer].usual_rate:
        return learned.learning_rate
    return usual


def calmer_rate(experiment: Experiment) -> float:
    """Return a rate to try where a training diverged: the usual one, or else a tenth of its own."""
    usual, own = usual_rate(experiment), experiment.training.learning_rate
    return usual if own > 2 * usual else own / 10
