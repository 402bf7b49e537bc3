"""What a run will need, before it starts: parameters, memory, seconds.

Parameters are counted on the ``meta`` device. Time is measured, not modelled, where the model is
small enough: a few real steps on random data, at two batch sizes, here and now.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from tfm_core.config import Experiment, RecurrentConfig, SequenceTaskConfig, sequence_len
from tfm_core.data.shape import data_shape
from tfm_core.models.build import CaptionShape, Model, TextShape
from tfm_core.training.devices import resolve
from tfm_core.training.models import new_model
from tfm_core.training.optimisation import make_optimizer
from tfm_core.variants.optimisers import OPTIMISERS

_PROBE_BATCHES = (4, 32)
_PROBE_STEPS = 6
_PROBE_MACS = 2e8  # a probe step above this many multiply-accumulates is not run but modelled
_MODELLED_RATE = 2e10  # multiply-accumulates per second of one CPU core, when nothing is measured
_PROCESS_BYTES = 350_000_000  # a worker with torch loaded, before it has a model


@dataclass(frozen=True, slots=True)
class Estimate:
    """n_parameters, memory in bytes, seconds of the whole training; ``measured`` or modelled."""

    n_parameters: int
    memory_bytes: int
    seconds_per_step: float
    seconds: float
    measured: bool


def estimate(experiment: Experiment, device: str = "cpu") -> Estimate:
    """Estimate a run on a device. Raises ValueError for a device that is not there."""
    torch_device = resolve(device)
    with torch.device("meta"):
        model = new_model(experiment)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    tokens = sequence_len(experiment)
    batch = experiment.training.batch_size
    macs = 3.0 * n_parameters * tokens  # one example, forward and backward
    if macs * _PROBE_BATCHES[-1] > _PROBE_MACS:
        per_step, measured = macs * batch / _MODELLED_RATE, False
    else:
        per_step, measured = _measure(experiment, torch_device, batch), True
    return Estimate(
        n_parameters=n_parameters,
        memory_bytes=_memory(experiment, n_parameters, tokens, batch),
        seconds_per_step=per_step,
        seconds=per_step * experiment.training.steps,
        measured=measured,
    )


def _memory(experiment: Experiment, n_parameters: int, tokens: int, batch: int) -> int:
    """Weights, gradients, optimiser state and activations of one step, and the process itself."""
    config = experiment.model
    moments = OPTIMISERS[experiment.training.optimizer].moments
    layers = sum(getattr(config, name, 0) for name in _LAYER_FIELDS)
    # per token and block: about 10 vectors of d_model, the hidden layer twice, two attention rows
    per_block = 10 * config.d_model + 2 * config.n_heads * tokens
    if isinstance(config, RecurrentConfig):
        layers *= 2  # as many in the decoder; a tanh for each pair of tokens is kept
        per_block += config.d_model * tokens
    else:
        per_block += 2 * config.d_ff
    activations = 4 * batch * tokens * layers * per_block
    return _PROCESS_BYTES + 4 * n_parameters * (2 + moments) + activations


_LAYER_FIELDS = ("n_layers", "n_encoder_layers", "n_decoder_layers")


def _measure(experiment: Experiment, torch_device: torch.device, batch: int) -> float:
    """Seconds of one step: a line through the times at two small batches, read at the real one."""
    model = new_model(experiment).to(torch_device)
    optimizer = make_optimizer(model, experiment.training)
    few, many = _PROBE_BATCHES
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a worker does: more would wait for each other
    try:
        times = {n: _step_time(experiment, model, optimizer, torch_device, n) for n in (many, few)}
    finally:
        torch.set_num_threads(threads)
    slope = max(0.0, (times[many] - times[few]) / (many - few))
    return times[few] + slope * (batch - few)


def _step_time(
    experiment: Experiment,
    model: Model,
    optimizer: torch.optim.Optimizer,
    torch_device: torch.device,
    batch: int,
) -> float:
    inputs = _random_inputs(experiment, torch_device, batch)
    best = float("inf")
    for _ in range(_PROBE_STEPS):  # the quickest: the first ones pay for what is new
        begin = time.perf_counter()
        loss = model(*inputs).logsumexp(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        float(loss.detach())  # waits for the device
        best = min(best, time.perf_counter() - begin)
    return best


def _random_inputs(
    experiment: Experiment, torch_device: torch.device, batch: int
) -> tuple[Tensor, ...]:
    shape, task = data_shape(experiment), experiment.task
    generator = torch.Generator().manual_seed(0)
    if isinstance(shape, TextShape):
        assert isinstance(task, SequenceTaskConfig)
        sizes = (
            (shape.src_vocabulary, task.max_src_len),
            (shape.tgt_vocabulary, task.n_answers),
        )
        return tuple(
            torch.randint(1, words, (batch, length), generator=generator).to(torch_device)
            for words, length in sizes
        )
    side = shape.image_size
    images = torch.randn(batch, shape.channels, side, side, generator=generator).to(torch_device)
    if isinstance(shape, CaptionShape):
        size = (batch, shape.tgt_len)
        words = torch.randint(1, shape.tgt_vocabulary, size, generator=generator)
        return images, words.to(torch_device)
    return (images,)
