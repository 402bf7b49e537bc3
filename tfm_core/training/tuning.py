"""Which part of a model is trained: the others are frozen, and LoRA's matrices are added."""

from __future__ import annotations

import torch

from tfm_core.choices.config import Experiment, TunedConfig
from tfm_core.models.build import Model


def choose_trained(model: Model, experiment: Experiment, seed: int) -> None:
    """Freeze what is not trained. seed: of LoRA's first matrices."""
    task = experiment.task
    if not isinstance(task, TunedConfig) or task.trains == "all":
        return
    from tfm_core.anatomy.trained import has_one_matrix, is_trained
    from tfm_core.pretrained.lora import add_lora

    if task.trains == "lora":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            add_lora(model, rank=task.rank, alpha=task.alpha, is_one_matrix=has_one_matrix(task))
    n_layers = int(getattr(experiment.model, "n_layers", 0))
    for name, parameter in model.named_parameters():
        is_added = ".parametrizations." in name and not name.endswith(".original")
        parameter.requires_grad_(is_added or is_trained(name, task, n_layers))
