"""Optimisers: which there is, and which weights decay."""

from __future__ import annotations

import torch
from torch import nn

from tfm_core.config import TrainingConfig
from tfm_core.mistakes.parts import SlicedProjection
from tfm_core.variants.optimisers import OPTIMISERS
from tfm_core.variants.record import resolve

_MATRICES = (nn.Linear, nn.Conv2d, nn.RNNBase, nn.RNNCellBase, SlicedProjection)


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Build the optimiser; weight decay pulls on matrices only.

    A matrix is what a linear layer, a convolution or a recurrent cell multiplies by. Left alone are
    biases and norms, and all that is looked up or added: embeddings, position tables, the CLS
    token; a matrix that is an embedding too is left alone as that. Where an optimiser moves hidden
    matrices alone, they are a group of their own.
    """
    chosen = OPTIMISERS[config.optimizer]
    hidden = hidden_matrices(model) if chosen.others else set()
    matrices = _matrices(model)
    groups = [
        {
            "params": [one for one in model.parameters() if one in hidden],
            "weight_decay": config.weight_decay,
            "is_hidden": True,
        },
        {
            "params": [one for one in model.parameters() if one in matrices - hidden],
            "weight_decay": config.weight_decay,
        },
        {
            "params": [one for one in model.parameters() if one not in matrices],
            "weight_decay": 0.0,
        },
    ]
    groups = [group for group in groups if group["params"]]
    made: torch.optim.Optimizer = resolve(chosen.torch_class)(
        groups, lr=config.learning_rate, **chosen.options(config)
    )
    return made


def hidden_matrices(model: nn.Module) -> set[nn.Parameter]:
    """Return the matrices between what a model reads and its answer, where Muon is at home.

    Not the last layer, which answers: rows of it are classes or words, and most are rare. Nor a
    convolution: its kernels are 9 numbers of one channel. What has one row alone is a vector.
    """
    ends = [part for name, part in model.named_children() if name in _ANSWERS]
    layers = [[one for one in end.modules() if isinstance(one, nn.Linear)] for end in ends]
    answering = {id(found[-1]) for found in layers if found}
    apart = {
        one
        for module in model.modules()
        if isinstance(module, nn.Conv2d) or id(module) in answering
        for one in module.parameters(recurse=False)
    }
    return {one for one in _matrices(model) - apart if min(one.shape[-2:]) > 1}


def memory_names(model: nn.Module, config: TrainingConfig) -> dict[str, frozenset[str]]:
    """Return what the optimiser keeps of each parameter, beside the number of the step."""
    chosen, hidden = OPTIMISERS[config.optimizer], hidden_matrices(model)
    return {
        name: frozenset(chosen.mover({"is_hidden": weight in hidden}).memory)
        for name, weight in model.named_parameters()
    }


_ANSWERS = ("output", "head")  # how models name what answers


def _matrices(model: nn.Module) -> set[nn.Parameter]:
    tables = _weights_of(model, (nn.Embedding,))
    return {one for one in _weights_of(model, _MATRICES) - tables if one.ndim >= 2}


def _weights_of(model: nn.Module, kinds: tuple[type[nn.Module], ...]) -> set[nn.Parameter]:
    """Return the parameters of the modules of some kinds; a parameter is equal to itself alone."""
    return {
        parameter
        for module in model.modules()
        if isinstance(module, kinds)
        for parameter in module.parameters(recurse=False)
    }
