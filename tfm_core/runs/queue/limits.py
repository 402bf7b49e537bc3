"""What a server's visitors may train, and whether it fits in the device's memory and on the disk.

A training step keeps weights, their gradients and the state of the optimiser, whatever the batch,
and activations, which grow with it (see ``facts.memory``). So half the batch helps only where the
rest of it fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tfm_core import machine, settings
from tfm_core.choices.config import Experiment, built
from tfm_core.choices.variants.training import OPTIMISERS
from tfm_core.facts import storage
from tfm_core.facts.compute import layers
from tfm_core.facts.memory import BYTES, PROCESS_BYTES, Memory, of_run
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError, in_bytes, joined
from tfm_core.settings import Settings


class LimitReached(StudentError):
    """A run is larger, or the line longer, than this server allows."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits: None means no limit, 0 allows nothing.

    A run is stopped after it has trained for ``max_seconds``, before and after each resume, and
    where others wait also after ``max_pause`` seconds of pause. only_shows: no run may be started.
    """

    max_queued: int = 20
    max_per_session: int = 8
    max_steps: int | None = None
    max_parameters: int | None = None
    max_seconds: float | None = None
    max_attention: int | None = None
    max_pause: float | None = None
    only_shows: bool = False

    @classmethod
    def of(cls, host: Settings) -> Limits:
        """Return the limits in the host's settings."""
        fixed = host.limits
        return cls(
            max_queued=fixed.max_queued,
            max_per_session=fixed.max_per_session,
            max_steps=fixed.max_steps,
            max_parameters=fixed.max_parameters,
            max_seconds=host.max_seconds,
            max_attention=fixed.max_attention,
            max_pause=fixed.max_pause,
            only_shows=host.only_shows,
        )

    def check_session(self, n_active: int) -> None:
        """Raise LimitReached, in a sentence, if a visitor has too many active runs."""
        self._check_open()
        if n_active >= self.max_per_session:
            raise LimitReached("Your limit of active runs is {n}. Stop one or wait.", n=n_active)

    def check(self, experiment: Experiment, *, n_queued: int) -> None:
        """Raise LimitReached, in a sentence, where a run may not enter the line."""
        self._check_open()
        if experiment.training is None:  # it never trains, and what may be opened is bounded itself
            return
        self.check_line(n_queued)
        steps = experiment.trained.steps
        if self.max_steps is not None and steps > self.max_steps:
            raise LimitReached(
                "This run has {steps:,} steps; the limit is {max_steps:,}.",
                steps=steps,
                max_steps=self.max_steps,
            )
        if self.max_parameters is not None:
            count = n_parameters(experiment)
            if count > self.max_parameters:
                raise LimitReached(
                    "This model has {count:,} parameters; the limit is {max_parameters:,}.",
                    count=count,
                    max_parameters=self.max_parameters,
                )
        if self.max_attention is not None:
            numbers = storage.attention_numbers(experiment)
            if numbers > self.max_attention:
                raise LimitReached(
                    Paragraph("runs/attention-limit", numbers=numbers, most=self.max_attention)
                )

    def check_line(self, n_queued: int) -> None:
        """Raise LimitReached, in a sentence, where the line is full."""
        if n_queued >= self.max_queued:
            raise LimitReached("The queue is full ({n}). Try again later.", n=n_queued)

    def check_trained(self, seconds: float) -> None:
        """Raise LimitReached, in a sentence, where a run has trained for as long as it may."""
        if self.max_seconds is not None and seconds >= self.max_seconds:
            raise LimitReached(
                "This run has reached the limit of {limit:,.0f} seconds of training.",
                limit=self.max_seconds,
            )

    def _check_open(self) -> None:
        if self.only_shows:
            raise LimitReached("This server only shows trained runs.")


def n_parameters(experiment: Experiment) -> int:
    """Count the parameters of a model without making any."""
    from tfm_core.models.build import init_on_meta
    from tfm_core.training.setup import new_model

    with init_on_meta():
        return sum(parameter.numel() for parameter in new_model(experiment).parameters())


_MAX_WORDS = 100_000  # rows of all embeddings and of the output: no task has more
_ENOUGH = 0.8  # of the memory: activations and the process need some too


class TooLarge(StudentError):
    """A model is larger than the memory of its device, or its snapshots than the disk."""


def check_memory(experiment: Experiment, device: str) -> None:
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
            "{n} snapshots need {needs}, but only {free} are free. Take fewer or delete runs.",
            n=n_snapshots,
            needs=in_bytes(needs),
            free=in_bytes(free),
        )


def out_of_memory(experiment: Experiment, device: str) -> str:
    """Return what a run that ran out of memory needs, and what would help."""
    needs, there = needed(experiment), memory_of(device)
    if there is None:
        is_batch = needs.activations > always(needs)
        cure = _smaller(experiment, device) if is_batch else N_("Use a smaller model.")
        return joined(_not_enough(experiment, needs, device), cure)
    if always(needs) > there:
        return _too_large(experiment, needs, device, there)
    size = experiment.trained.batch_size
    process = PROCESS_BYTES if device == "cpu" else 0
    if needs.total + process <= there:
        used_up = N_(
            "Other programs use the memory of {device}; this run needs {total} of {there}.",
            device=device,
            total=in_bytes(needs.total + process),
            there=in_bytes(there),
        )
        return joined(used_up, N_("Try again later."), _beside_others(experiment, device))
    fitting = next((n for n in _halves(size) if _total(experiment, n) + process <= there), None)
    cure = (
        N_("A single example doesn't fit. Use shorter sequences or a smaller model.")
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

    return next((known.memory_total for known in devices() if known.name == device), None)


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
        "This model doesn't fit in the memory of {device} ({there}) at any batch size.",
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
        else N_("Reduce d_model, d_ff or the number of layers.")
    )
    return joined(too_large, parts, cure)


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
