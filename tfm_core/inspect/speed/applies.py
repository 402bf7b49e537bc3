"""Where a comparison makes no sense, and why, said before anything is measured."""

from __future__ import annotations

from collections.abc import Callable

from tfm_core.config import (
    Experiment,
    TextTaskConfig,
)
from tfm_core.sentences import N_

Reason = Callable[[Experiment, str], str | None]


def _needs_attention(experiment: Experiment, device: str) -> str | None:
    if experiment.model.has_blocks:
        return None
    return N_(
        "This model has no multi-head attention, so there is nothing to fuse or to loop over."
    )


def _needs_blocks(experiment: Experiment, device: str) -> str | None:
    if experiment.model.has_blocks:
        return None
    return N_(
        "This model has no stack of Transformer blocks; choose a Transformer to measure this."
    )


def _needs_pictures(experiment: Experiment, device: str) -> str | None:
    if experiment.task.class_names:
        return None
    return N_("This model does not cut pictures into patches; the Vision Transformer does.")


def _needs_plain_data(experiment: Experiment, device: str) -> str | None:
    task = experiment.task
    if task.class_names or isinstance(task, TextTaskConfig):
        return None
    return N_("The data of this task is neither pictures alone nor pairs of sentences.")


def _needs_cores(experiment: Experiment, device: str) -> str | None:
    from tfm_core.training.devices import usable_cores

    if device != "cpu":
        return N_("Threads share out work on the CPU; a GPU shares it out among its own cores.")
    if usable_cores() == 1:
        return N_("This process may use one core only, so there is nothing to share out.")
    return None


def _needs_gpu(experiment: Experiment, device: str) -> str | None:
    if device != "cpu":
        return None
    from tfm_core.training.devices import devices

    there = [one for one in devices() if one.available and one.name != "cpu"]
    if there:
        return N_(
            "Choose {label} as the device on the Train page, and both are compared.",
            label=there[0].label,
        )
    missing = next(one for one in devices() if one.name == "cuda:0")
    return N_("There is no GPU to compare with on this machine. {reason}", reason=missing.reason)


def _needs_compiler(experiment: Experiment, device: str) -> str | None:
    from tfm_core.training.compiling import why_no_compiler

    return why_no_compiler(device)


REASONS: dict[str, Reason] = {
    "attention": _needs_attention,
    "loops": _needs_attention,
    "checkpointing": _needs_blocks,
    "length": _needs_blocks,
    "patches": _needs_pictures,
    "data": _needs_plain_data,
    "threads": _needs_cores,
    "gpu": _needs_gpu,
    "compile": _needs_compiler,
}


def why_not(name: str, experiment: Experiment, device: str) -> str | None:
    """Return why a comparison of the registry says nothing here, or None where it does."""
    reason = REASONS.get(name)
    return None if reason is None else reason(experiment, device)
