"""Optimisers: which there is, and which weights decay."""

from __future__ import annotations

import torch
from torch import nn

from tfm_core.config import TrainingConfig
from tfm_core.layers.attention import SlicedProjection
from tfm_core.variants.optimisers import OPTIMISERS
from tfm_core.variants.record import resolve

_MATRICES = (nn.Linear, nn.Conv2d, nn.RNNBase, nn.RNNCellBase, SlicedProjection)


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Build the optimiser; weight decay pulls on matrices only.

    A matrix is what a linear layer, a convolution or a recurrent cell multiplies by. Left alone are
    biases and norms, and all that is looked up or added: embeddings, position tables, the CLS
    token; a matrix that is an embedding too is left alone as that.
    """
    tables = _weights_of(model, (nn.Embedding,))
    multiplied = _weights_of(model, _MATRICES)
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for parameter in model.parameters():
        decays = parameter in multiplied and parameter not in tables and parameter.ndim >= 2
        (matrices if decays else others).append(parameter)
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    chosen = OPTIMISERS[config.optimizer]
    made: torch.optim.Optimizer = resolve(chosen.torch_class)(
        groups, lr=config.learning_rate, **chosen.options(config)
    )
    return made


def _weights_of(model: nn.Module, kinds: tuple[type[nn.Module], ...]) -> set[nn.Parameter]:
    """Return the parameters of the modules of some kinds; a parameter is equal to itself alone."""
    return {
        parameter
        for module in model.modules()
        if isinstance(module, kinds)
        for parameter in module.parameters(recurse=False)
    }
