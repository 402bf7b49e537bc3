"""From an experiment to its model: sizes come from the task, first weights from the seed."""

from __future__ import annotations

import torch

from tfm_core.config import Experiment
from tfm_core.data.shape import data_shape
from tfm_core.models.build import Model, build_model
from tfm_core.training.seeds import mix

__all__ = ["data_shape", "new_model"]


def new_model(experiment: Experiment) -> Model:
    """Build the model on the default device, its first weights drawn from the seed.

    The caller's own random numbers stay as they were. Under ``torch.device("meta")`` no memory is
    taken.
    """
    shape = data_shape(experiment)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(mix(experiment.seed, 0))
        return build_model(experiment.model, shape)
