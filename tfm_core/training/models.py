"""What the seed decides: the first weights of a model, and a seed of its own for every draw."""

from __future__ import annotations

import torch

from tfm_core.config import Experiment
from tfm_core.data.shape import data_shape
from tfm_core.models.build import Model, build_model


def new_model(experiment: Experiment) -> Model:
    """Build the model on the default device, its first weights drawn from the seed.

    The caller's own random numbers stay as they were. Inside ``unfilled()`` no memory is
    taken.
    """
    shape = data_shape(experiment)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(mix(experiment.seed, 0))
        return build_model(experiment.model, shape)


def mix(*numbers: int) -> int:
    """Return one well-mixed 63-bit seed for several numbers (SplitMix64, Steele et al. 2014).

    The first is the experiment's seed, the others say which draw it is for.
    """
    state = 0
    for number in numbers:
        state = (state + number + 0x9E3779B97F4A7C15) & (2**64 - 1)
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        state ^= state >> 31
    return state >> 1
