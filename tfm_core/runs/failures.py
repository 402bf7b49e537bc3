"""Why a run failed, in a sentence that says what would help."""

from __future__ import annotations

import errno

from tfm_core.config import Experiment
from tfm_core.sentences import N_, StudentError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL_WORDS = ("no space left", "os error 28", "disk quota", "file too large")
_GONE_WORDS = (
    "device-side assert",
    "device is lost",
    "unspecified launch",
    "no longer available",
)


def sentence(error: BaseException, experiment: Experiment, device: str) -> str:
    """Return what a reader should know about the error that ended a run."""
    text = str(error).strip() or N_("no further words")
    if _is_out_of_memory(error):
        return _out_of_memory(experiment, device)
    if isinstance(error, OSError) and is_disk_full(error):
        return N_(
            "The disk is full, so the run could not be written on; make room, for example "
            "by deleting old runs, and resume it.",
        )
    if isinstance(error, StudentError):
        return error.sentence  # a device that is not there, an experiment that cannot be
    if device != "cpu" and any(words in text.lower() for words in _GONE_WORDS):
        return N_(
            "The device {device} stopped working ({answer}); resume the run, or train on cpu.",
            device=device,
            answer=text.splitlines()[0],
        )
    return N_(
        "{name}: {splitlines} (more in worker.log in the run's folder)",
        name=type(error).__name__,
        splitlines=text.splitlines()[0],
    )


def is_disk_full(error: OSError) -> bool:
    """Say whether an error means that nothing more can be written."""
    if error.errno is not None:
        return error.errno in _FULL
    return any(words in str(error).lower() for words in _FULL_WORDS)


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    words = str(error).lower()
    is_torch = type(error).__name__ == "OutOfMemoryError" or (
        isinstance(error, RuntimeError) and ("out of memory" in words or "can't allocate" in words)
    )
    return is_torch


def _out_of_memory(experiment: Experiment, device: str) -> str:
    size = experiment.training.batch_size
    cure = (
        N_("a batch size of {size} needs about half", size=size // 2)
        if size > 1
        else N_("use a smaller model")
    )
    return N_(
        "The memory of {device} is not enough for batches of {size}; {cure}.",
        device=device,
        size=size,
        cure=cure,
    )
