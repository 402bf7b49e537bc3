"""What a training starts from: first weights, its trained part, data on the device, precision.

On the device a batch is taken from the data without a copy from the CPU. Pictures and texts that
leave no memory for a training step stay with the CPU, which then sends each batch.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from tfm_core.choices.config import Experiment, TunedConfig
from tfm_core.choices.variants.training import PRECISIONS
from tfm_core.data.moving import Data, size_of
from tfm_core.data.tasks import data_shape
from tfm_core.models.build import Model, build_model, init_on_meta
from tfm_core.sentences import Paragraph, in_bytes, joined
from tfm_core.training.devices import memory_free


def new_model(experiment: Experiment) -> Model:
    """Build the model on the default device, its first weights drawn from the seed.

    A model that is trained further has those of its base, where it has one; raises StudentError
    where they are gone. The caller's own random numbers stay as they were. Inside
    ``init_on_meta()`` no memory is taken.
    """
    model, task = drawn_model(experiment), experiment.task
    is_laid_out = next(model.parameters()).is_meta
    if isinstance(task, TunedConfig) and task.base and not is_laid_out:
        from tfm_core.pretrained import base

        base.begin(model, task)
    return model


def drawn_model(experiment: Experiment) -> Model:
    """Build the model, all of its weights drawn from the seed."""
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


def move_data(data: Data, experiment: Experiment, device: torch.device) -> tuple[Data, str | None]:
    """Return data where a training on the device reads it, and a remark on it, or None."""
    remark = data.remark
    if device.type == "cpu" or not data.large:
        return data.to(device), remark
    from tfm_core.facts.memory import of_run

    size = sum(size_of(getattr(data, name)) for name in data.large)
    free = memory_free(device)
    with init_on_meta():
        model = new_model(experiment)
    step_bytes = of_run(
        experiment, sum(parameter.numel() for parameter in model.parameters())
    ).total
    if free is None or size + step_bytes <= free:
        return data.to(device), remark
    sends = Paragraph(
        "training/data-stays",
        size=in_bytes(size),
        free=in_bytes(free),
        device=str(device),
    )
    return data.to(device, besides=data.large), joined(remark, sends) if remark else sends


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return the context in which forward passes run at a precision (Micikevicius et al. 2018)."""
    kind = PRECISIONS[precision].autocast
    if kind is None:
        return nullcontext()
    return torch.autocast(device.type, dtype=getattr(torch, kind))


def to_floats(*values: Tensor | float) -> list[float]:
    """Return scalars as plain numbers, with a single wait for the device that computes them.

    They are read as float32, which holds counts up to 2^24 exactly.
    """
    tensors = [value.detach().float() for value in values if isinstance(value, Tensor)]
    numbers = iter(torch.stack(tensors).tolist() if tensors else [])
    return [next(numbers) if isinstance(value, Tensor) else float(value) for value in values]


def set_dropout(model: nn.Module, p: float) -> None:
    """Set the dropout probability everywhere in a model."""
    module: Any
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = p
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = p  # attention and recurrent layers apply it themselves


def choose_trained(model: Model, experiment: Experiment, seed: int) -> None:
    """Freeze the parts that are not trained, and add LoRA's matrices, drawn from a seed."""
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
