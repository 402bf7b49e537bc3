"""What a run will need, before it starts: parameters, memory, seconds.

Parameters are counted on the ``meta`` device, memory is worked out by ``facts.memory``. Time is
measured, not modelled, where the model is small enough: a few real steps on random data, at two
batch sizes, here and now, and without torch.compile.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from tfm_core.anatomy.trained import trained
from tfm_core.choices.config import Experiment
from tfm_core.data.tasks import data_shape
from tfm_core.facts.architectures import of_experiment
from tfm_core.facts.batches import Batches
from tfm_core.facts.compute import macs, unasked
from tfm_core.facts.memory import of_run, peak_bytes
from tfm_core.layers.blocks import enable_checkpointing
from tfm_core.models.build import CaptionShape, Model, TextShape, init_on_meta
from tfm_core.training.devices import resolve
from tfm_core.training.optimisation import make_optimizer
from tfm_core.training.setup import autocast, new_model

_PROBE_BATCHES = (4, 32)
_PROBE_STEPS = 6
# a probe step above so many multiply-accumulates is not run but modelled, at so many a second
_PROBE_MACS, _MODELLED_RATE = 2e8, 2e10  # of one CPU core
_PROBE_MACS_OF_GPU, _MODELLED_RATE_OF_GPU = 5e10, 2e12  # in float32


@dataclass(frozen=True, slots=True)
class Estimate:
    """n_parameters, memory in bytes, seconds of the whole training; ``measured`` or modelled.

    step_bytes: what a training step keeps, see ``facts.memory``; memory_bytes: the most that
    a worker uses.
    """

    n_parameters: int
    step_bytes: int
    memory_bytes: int
    seconds_per_step: float
    seconds: float
    measured: bool


def estimate(experiment: Experiment, device: str = "cpu") -> Estimate:
    """Estimate a run on a device. Raises ValueError for a device that is not there."""
    torch_device = resolve(device)
    with init_on_meta():
        model = new_model(experiment)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    batches, step_bytes = Batches.of_experiment(experiment), of_run(experiment, n_parameters).total
    # one example: forward and backward, and with checkpointing forward once more
    row = of_experiment(experiment, "")
    learned = trained(
        row.model, row.shape, experiment.task, src_len=row.src_len, tgt_len=row.tgt_len
    )
    work = (1.0 + learned.backward + experiment.trained.checkpointing) * _macs(experiment)
    is_cpu = torch_device.type == "cpu"
    if work * _PROBE_BATCHES[-1] > (_PROBE_MACS if is_cpu else _PROBE_MACS_OF_GPU):
        rate = _MODELLED_RATE if is_cpu else _MODELLED_RATE_OF_GPU
        fixed, of_example, measured = 0.0, work / rate, False
    else:
        fixed, of_example = _measure(experiment, torch_device)
        measured = True
    steps = experiment.trained.steps
    return Estimate(
        n_parameters=n_parameters,
        step_bytes=step_bytes,
        memory_bytes=peak_bytes(step_bytes),
        seconds_per_step=fixed + of_example * batches.size,
        seconds=fixed * steps + of_example * batches.examples(steps),
        measured=measured,
    )


def _macs(experiment: Experiment) -> int:
    """Return the multiply-accumulates of one forward pass of one of the longest examples."""
    row = of_experiment(experiment, "")
    counts = macs(row.model, row.shape, src_len=row.src_len, tgt_len=row.tgt_len)
    return sum(counts.values()) - unasked(row.model, row.shape)


def _measure(experiment: Experiment, torch_device: torch.device) -> tuple[float, float]:
    """Return the seconds of a step, and those that each example adds: a line through the times at
    two small batches.
    """
    model = new_model(experiment).to(torch_device)
    if experiment.trained.checkpointing:
        enable_checkpointing(model)
    optimizer = make_optimizer(model, experiment.trained)
    few, many = _PROBE_BATCHES
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a worker does: more would wait for each other
    try:
        times = {n: _step_time(experiment, model, optimizer, torch_device, n) for n in (many, few)}
    finally:
        torch.set_num_threads(threads)
    slope = max(0.0, (times[many] - times[few]) / (many - few))
    return times[few] - slope * few, slope


def _step_time(
    experiment: Experiment,
    model: Model,
    optimizer: torch.optim.Optimizer,
    torch_device: torch.device,
    batch: int,
) -> float:
    inputs = _random_inputs(experiment, torch_device, batch)
    # what others do meanwhile, in this process too, is no part of a step
    now = time.thread_time if torch_device.type == "cpu" else time.perf_counter
    best = float("inf")
    for _ in range(_PROBE_STEPS):  # the quickest: the first ones pay for what is new
        begin = now()
        with autocast(experiment.trained.precision, torch_device):
            loss = model(*inputs).float().logsumexp(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        float(loss.detach())  # waits for the device
        best = min(best, now() - begin)
    return best


def _random_inputs(
    experiment: Experiment, torch_device: torch.device, batch: int
) -> tuple[Tensor, ...]:
    shape = data_shape(experiment)
    generator = torch.Generator().manual_seed(0)
    if isinstance(shape, TextShape):
        task = experiment.task
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
