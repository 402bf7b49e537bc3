"""Optimisers and learning-rate schedules."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn

from tfm_core.config import TrainingConfig

# each takes (step, warm-up steps, total steps), counted from 1, and returns a share of the peak
SCHEDULE_FUNCTIONS: dict[str, Callable[[int, int, int], float]] = {
    "constant": lambda step, warm, total: min(1.0, step / warm),
    "cosine": lambda step, warm, total: (
        step / warm if step < warm else 0.5 + 0.5 * math.cos(math.pi * _done(step, warm, total))
    ),
    "linear": lambda step, warm, total: (
        step / warm if step < warm else 1.0 - _done(step, warm, total)
    ),
    "inverse-sqrt": lambda step, warm, total: min(step / warm, math.sqrt(warm / step)),
}


def _done(step: int, warm: int, total: int) -> float:
    return (step - warm) / max(1, total - warm + 1)  # the last step still moves a little


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Return the learning rate of a step, counted from 1.

    inverse-sqrt is Vaswani et al. 2017, section 5.3, with its peak at ``learning_rate``.
    """
    warm = max(1, round(config.warmup * config.steps))
    return config.learning_rate * SCHEDULE_FUNCTIONS[config.schedule](step, warm, config.steps)


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
    betas = (config.beta1, config.beta2)
    rate = config.learning_rate
    if config.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=rate, betas=betas, fused=True)
    if config.optimizer == "adam":
        return torch.optim.Adam(groups, lr=rate, betas=betas, fused=True)
    return torch.optim.SGD(groups, lr=rate, momentum=config.beta1, fused=True)
