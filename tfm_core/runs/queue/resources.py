"""Whether a run fits in the memory of its device and on the disk, and what helps where it does not.

A training step keeps weights, their gradients and the state of the optimiser, whatever the batch,
and activations, which grow with it (see ``facts.memory``). So half the batch helps only where the
rest of it fits.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfm_core import machine, settings
from tfm_core.choices.config import Experiment, built
from tfm_core.choices.variants.training import OPTIMISERS
from tfm_core.facts import storage
from tfm_core.facts.compute import layers
from tfm_core.facts.memory import BYTES, PROCESS_BYTES, Memory, of_run
from tfm_core.runs.queue.limits import n_parameters
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError, in_bytes, joined

_MAX_WORDS = 100_000  # rows of all embeddings and of the output: no task has more
_ENOUGH = 0.8  # of the memory: activations and the process need some too


class TooLarge(StudentError):
    """A model is larger than the memory of its device, or its snapshots than the disk."""


def check(experiment: Experiment, device: str) -> None:
    """Raise TooLarge, in a sentence, where a run surely does not fit in the memory of its device.

    Surely: weights, gradients and the optimiser's state alone are more than there is in all. Small
    models pass without loading torch.
    """
    there = memory_of(device) if device == "cpu" else None
    if there is not None and _at_most(experiment) < there:
        return
    if device != "cpu" and _at_most(experiment) < 2**30:
        return
    there = memory_of(device) if there is None else there
    needs = needed(experiment)
    if there is not None and always(needs) > there:
        raise TooLarge(_too_large(experiment, needs, device, there))


def check_disk(experiment: Experiment, free: int) -> None:
    """Raise TooLarge, in a sentence, where the snapshots of a new run alone take more than is free.

    free: bytes on the disk of the runs.
    """
    needs = storage.snapshots_bytes(experiment, settings.read().limits.max_attention)
    if needs > free:
        n_snapshots = experiment.trained.snapshots
        raise TooLarge(
            "{n} snapshots need {needs}, but {free} are free. Take fewer, or delete runs.",
            n=n_snapshots,
            needs=in_bytes(needs),
            free=in_bytes(free),
        )


def out_of_memory(experiment: Experiment, device: str) -> str:
    """Return what a run that ran out of memory needs, and what would help."""
    needs, there = needed(experiment), memory_of(device)
    if there is None:
        return _unknown(experiment, needs, device)
    if always(needs) > there:
        return _too_large(experiment, needs, device, there)
    size = experiment.trained.batch_size
    process = PROCESS_BYTES if device == "cpu" else 0
    if needs.total + process <= there:
        used_up = N_(
            "Others use the memory of {device}: this run needs about {total} of {there}.",
            device=device,
            total=in_bytes(needs.total + process),
            there=in_bytes(there),
        )
        return joined(used_up, N_("Try again later."), _beside_others(experiment, device))
    fitting = next((n for n in _halves(size) if _total(experiment, n) + process <= there), None)
    cure = (
        N_("Not even one example fits: use shorter sequences or a smaller model.")
        if fitting is None
        else N_("A batch size of {n} fits.", n=fitting)
    )
    return joined(_not_enough(experiment, needs, device), cure)


def _not_enough(experiment: Experiment, needs: Memory, device: str) -> Sentence:
    return Paragraph(
        "runs/out-of-memory",
        device=device,
        size=experiment.trained.batch_size,
        batch=in_bytes(needs.activations),
        always=in_bytes(always(needs)),
    )


def needed(experiment: Experiment) -> Memory:
    """Return what a training step of a run keeps. Loads torch, and makes no model."""
    return of_run(experiment, n_parameters(experiment))


def always(needs: Memory) -> int:
    """Return the bytes of a step that no batch is too small for."""
    return needs.weights + needs.gradients + needs.optimizer


def memory_of(device: str) -> int | None:
    """Return the total bytes that a process may use on a device, or None if unknown."""
    if device == "cpu":
        return machine.memory(swap=True)
    from tfm_core.training.gpu_helper import devices

    return next((one.memory_total for one in devices() if one.name == device), None)


def _beside_others(experiment: Experiment, device: str) -> str:
    """Return what needs less: on a GPU a batch that fits into what others leave of it."""
    left = _left(device)
    if left is None:
        return _smaller(experiment, device)
    halves = _halves(experiment.trained.batch_size)
    fitting = next((n for n in halves if _total(experiment, n) <= left), None)
    if fitting is None:
        return N_("Or use a smaller model.")
    return N_("Or use a batch size of {n}.", n=fitting)


def _left(device: str) -> int | None:
    """Return the bytes of a GPU that are free or this process's own; None for other devices.

    For the process whose memory ran out: no other knows what that one holds.
    """
    if not device.startswith("cuda"):
        return None
    import torch

    from tfm_core.training.devices import memory_free

    if not torch.cuda.is_available():
        return None
    free = memory_free(torch.device(device))
    return None if free is None else free + int(torch.cuda.memory_reserved(device))


def _too_large(experiment: Experiment, needs: Memory, device: str, there: int) -> str:
    optimizer = experiment.trained.optimizer
    lean = min(OPTIMISERS, key=lambda name: OPTIMISERS[name].numbers(1, 0))
    leaner = needs.weights + needs.gradients + OPTIMISERS[lean].numbers(needs.gradients, 0)
    too_large = N_(
        "This model is too large for the memory of {device} ({there}) at any batch size.",
        device=device,
        there=in_bytes(there),
    )
    parts = N_(
        "Weights, gradients and the state of {optimizer} need {always}.",
        optimizer=optimizer,
        always=in_bytes(always(needs)),
    )
    cure = (
        N_(
            "Use {lean}, which needs {leaner}, or a smaller model.",
            lean=lean,
            leaner=in_bytes(leaner),
        )
        if leaner <= _ENOUGH * there
        else N_("Use a smaller model: less d_model or d_ff, or fewer layers.")
    )
    return joined(too_large, parts, cure)


def _unknown(experiment: Experiment, needs: Memory, device: str) -> str:
    """Return what is known where the memory of a device is unknown."""
    is_batch = needs.activations > always(needs)
    cure = _smaller(experiment, device) if is_batch else N_("Use a smaller model.")
    return joined(_not_enough(experiment, needs, device), cure)


def _smaller(experiment: Experiment, device: str) -> str:
    """Return what needs less, and how much less."""
    size = experiment.trained.batch_size
    if size == 1:
        return N_("Or use a smaller model.")
    process = PROCESS_BYTES if device == "cpu" else 0
    total = in_bytes(_total(experiment, size // 2) + process)
    return N_("A batch size of {n} needs about {total}.", n=size // 2, total=total)


def _total(experiment: Experiment, batch_size: int) -> int:
    training = experiment.trained.replace(batch_size=batch_size)
    return needed(experiment.replace(training=training.model_dump())).total


def _halves(size: int) -> Iterator[int]:
    while size > 1:
        size //= 2
        yield size


def _at_most(experiment: Experiment) -> int:
    """Return more bytes than weights, gradients and the optimiser's state can be, without torch."""
    config = built(experiment.model)
    d = config.d_model
    count = (sum(layers(config)) + 1) * 16 * d * (d + config.d_ff) + _MAX_WORDS * d
    remembered = OPTIMISERS[experiment.trained.optimizer].numbers(count, 0)
    return BYTES * (3 * count + remembered)  # the best weights may be stored, too
