"""Optimisers and learning-rate schedules."""

from __future__ import annotations

import torch
from torch import nn

from tfm_core.config import TrainingConfig
from tfm_core.variants.optimisers import OPTIMISERS
from tfm_core.variants.record import resolve
from tfm_core.variants.schedules import SCHEDULES


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Return the learning rate of a step, counted from 1."""
    warm = max(1, round(config.warmup * config.steps))
    return config.learning_rate * SCHEDULES[config.schedule].share(step, warm, config.steps)


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Build the optimiser; weight decay pulls on matrices only, not on biases, norms and tables."""
    kept = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding)
        for parameter in module.parameters()
    }
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for parameter in model.parameters():
        decays = parameter.ndim >= 2 and id(parameter) not in kept
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
