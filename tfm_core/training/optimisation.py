"""Optimisers and their parameter groups, the gradients of each part, and averaged weights."""

from __future__ import annotations

import copy
import re
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from tfm_core.choices.config import TrainingConfig
from tfm_core.choices.mistakes.parts import SlicedProjection
from tfm_core.choices.variants.record import resolve
from tfm_core.choices.variants.training import OPTIMISERS

_MATRICES = (nn.Linear, nn.Conv2d, nn.RNNBase, nn.RNNCellBase, SlicedProjection)


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Build the optimiser of what is trained; weight decay pulls on matrices only.

    A matrix is what a linear layer, a convolution or a recurrent cell multiplies by. Left alone are
    biases and norms, and all that is looked up or added: embeddings, position tables, the CLS
    token; a matrix that is an embedding too is left alone as that. Where an optimiser moves hidden
    matrices alone, they are a separate group.
    """
    chosen = OPTIMISERS[config.optimizer]
    hidden = hidden_matrices(model) if chosen.others else set()
    matrices = _matrices(model)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {
            "params": [parameter for parameter in trained if parameter in hidden],
            "weight_decay": config.weight_decay,
            "is_decayed": True,
            "is_hidden": True,
        },
        {
            "params": [parameter for parameter in trained if parameter in matrices - hidden],
            "weight_decay": config.weight_decay,
            "is_decayed": True,
        },
        {
            "params": [parameter for parameter in trained if parameter not in matrices],
            "weight_decay": 0.0,
            "is_decayed": False,
        },
    ]
    groups = [group for group in groups if group["params"]]
    optimizer: torch.optim.Optimizer = resolve(chosen.torch_class)(
        groups, lr=config.learning_rate, **chosen.options(config)
    )
    return optimizer


def hidden_matrices(model: nn.Module) -> set[nn.Parameter]:
    """Return the matrices between what a model reads and its answer, where Muon is at home.

    Not the last layer, which answers: rows of it are classes or words, and most are rare. Nor a
    convolution: its kernels are 9 numbers of one channel. What has one row alone is a vector.
    """
    ends = [part for name, part in model.named_children() if name in _ANSWERS]
    layers = [[module for module in end.modules() if isinstance(module, nn.Linear)] for end in ends]
    last_layers = {id(found[-1]) for found in layers if found}
    others = {
        one
        for module in model.modules()
        if isinstance(module, nn.Conv2d) or id(module) in last_layers
        for one in module.parameters(recurse=False)
    }
    return {weight for weight in _matrices(model) - others if min(weight.shape[-2:]) > 1}


def memory_names(model: nn.Module, config: TrainingConfig) -> dict[str, frozenset[str]]:
    """Return what the optimiser keeps of each parameter, besides the number of the step."""
    chosen, hidden = OPTIMISERS[config.optimizer], hidden_matrices(model)
    return {
        name: frozenset(chosen.mover({"is_hidden": weight in hidden}).memory)
        for name, weight in model.named_parameters()
    }


_ANSWERS = ("output", "head")  # how models name what answers


def _matrices(model: nn.Module) -> set[nn.Parameter]:
    tables = _weights_of(model, (nn.Embedding,))
    return {weight for weight in _weights_of(model, _MATRICES) - tables if weight.ndim >= 2}


def _weights_of(model: nn.Module, kinds: tuple[type[nn.Module], ...]) -> set[nn.Parameter]:
    """Return the parameters of the modules of some kinds; a parameter is equal to itself alone."""
    return {
        parameter
        for module in model.modules()
        if isinstance(module, kinds)
        for parameter in module.parameters(recurse=False)
    }


_PART = re.compile(r"(?:encoder|decoder)\.\w+(?:\.\d+)?|\w+")


def part_of(name: str) -> str:
    """Return the part of the model that a parameter belongs to: a block, or a module beside them.

    ``decoder.layers.0.self_attention.q.weight`` is of ``decoder.layers.0``.
    """
    match = _PART.match(name)
    assert match is not None
    return match[0]


def gradient_norms(model: nn.Module, whole: float, limit: float | None) -> dict[str, float]:
    """Return the norm of the gradient of each part, in the model's order, as before clipping.

    The norm of the whole gradient hides one that explodes or dies on its way: one layer can have
    all of it (Pascanu et al. 2013).

    whole: the norm of all, before it was clipped to ``limit``; None where nothing clips.
    """
    by_part: dict[str, list[Tensor]] = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            by_part.setdefault(part_of(name), []).append(parameter.grad)
    if not by_part:
        return {}
    norms = torch.stack([torch.nn.utils.get_total_norm(some) for some in by_part.values()])
    longer = max(1.0, whole / limit) if limit else 1.0
    return dict(zip(by_part, (norms.float() * longer).tolist(), strict=True))


AnyModel = TypeVar("AnyModel", bound=nn.Module)


def decay_at(decay: float, n: int) -> float:
    """Return β of the ``n``-th update, from 1: it rises to ``decay``, so the start is soon gone.

    min(decay, (1 + n) / (10 + n)), as in TensorFlow's ``ExponentialMovingAverage``.
    """
    return min(decay, (1 + n) / (10 + n))


class AveragedWeights(Generic[AnyModel]):
    """A second model with the average of a first one's weights, on the same device.

    The mean of the steps lies closer to the minimum than any of them (Polyak & Juditsky 1992). Here
    it forgets exponentially: ``average <- decay * average + (1 - decay) * weights`` (Szegedy et al.
    2016, section 8). ``torch.optim.swa_utils.AveragedModel`` walks the modules at every step, which
    takes 3 to 5% of a step of a small model; one fused pass over lists takes a tenth of that.

    model: in eval mode, never trained. n_updates: steps that went into it.
    """

    def __init__(self, model: AnyModel, decay: float) -> None:
        """Begin with the current weights."""
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay, self.n_updates = decay, 0
        self._model = model
        self._mean, self._weights = (
            [parameter.detach() for parameter in one.parameters()] for one in (self.model, model)
        )
        self._copies, self._buffers = (list(one.buffers()) for one in (self.model, model))

    @torch.no_grad()
    def update(self) -> None:
        """Update the average with the current weights; buffers are copied."""
        self.n_updates += 1
        share = 1 - decay_at(self.decay, self.n_updates)
        torch._foreach_lerp_(self._mean, self._weights, share)
        if self._buffers:
            torch._foreach_copy_(self._copies, self._buffers)

    def restore(self, weights: dict[str, Tensor] | None, n_updates: int) -> None:
        """Continue from the state of a checkpoint; without one, from the current weights.

        Raises RuntimeError for weights of another model.
        """
        self.model.load_state_dict(self._model.state_dict() if weights is None else weights)
        self.n_updates = 0 if weights is None else n_updates
