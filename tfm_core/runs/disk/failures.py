"""Errors of the disk and of trainings as sentences that say what would help."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tfm_core.choices.config import Experiment
from tfm_core.runs.queue import limits
from tfm_core.sentences import N_, Sentence, StudentError

_GONE_WORDS = ("device-side assert", "device is lost", "unspecified launch", "no longer available")
_BLOCK = 4096  # bytes that the smallest file takes

_FULL = N_("The disk is full. Delete runs and empty the trash.")
_FORBIDDEN = N_("The permissions of the runs folder forbid this.")

REFUSALS: dict[int, Sentence] = {
    errno.ENOSPC: _FULL,
    errno.EROFS: N_("The disk of the runs is read-only."),
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.ENOENT: N_("A file or folder is gone: it was deleted or its disk removed."),
    errno.EBUSY: N_("Another program uses this file or folder. Try again."),
}
"""Sentences by the error numbers of the operating system; of others it tells its own words."""

_OF_WINDOWS = {32: errno.EBUSY}
"""Python turns ERROR_SHARING_VIOLATION into EACCES."""
_NUMBERED = re.compile(r"(?:\(os error |\[errno )(\d+)")
_IN_WORDS = ("no space left", "disk quota")

logger = logging.getLogger(__name__)


class Refused(StudentError):
    """The operating system refused something: space, permission, a response of the disk."""


def refusal(error: OSError) -> Sentence:
    """Return what the operating system refused, and what would help; without a path."""
    number = _number(error)
    known = None if number is None else REFUSALS.get(number)
    if known is not None:
        return known
    answer = type(error).__name__ if number is None else os.strerror(number)
    return N_("A run's file could not be read or written ({answer}).", answer=answer)


@contextlib.contextmanager
def os_errors_as_sentences() -> Iterator[None]:
    """Raise Refused, in a sentence, in place of an OSError; the log keeps the error itself."""
    try:
        yield
    except OSError as error:
        logger.warning("The operating system refused: %s", error, exc_info=error)
        raise Refused(refusal(error)) from error


def obstacle(folder: Path) -> Sentence | None:
    """Return why a folder cannot be written now, in a sentence, or None."""
    try:
        if shutil.disk_usage(folder).free < _BLOCK:
            return _FULL
        if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY:
            return REFUSALS[errno.EROFS]
    except OSError as error:
        return refusal(error)
    return None if os.access(folder, os.W_OK) else _FORBIDDEN


def sentence(error: BaseException, experiment: Experiment, device: str) -> str:
    """Return the error that ended a run as a sentence."""
    text = str(error).strip() or N_("no message")
    if _is_out_of_memory(error):
        return limits.out_of_memory(experiment, device)
    if isinstance(error, OSError):
        return refusal(error)
    if isinstance(error, StudentError):
        return error.sentence  # a device that is not there, an experiment that cannot be
    if device != "cpu" and any(words in text.lower() for words in _GONE_WORDS):
        return N_(
            "The device {device} stopped working ({answer}). Resume the run, or train on cpu.",
            device=device,
            answer=text.splitlines()[0],
        )
    return N_(
        "{name}: {splitlines} (details in worker.log in the run's folder)",
        name=type(error).__name__,
        splitlines=text.splitlines()[0],
    )


def is_disk_full(error: OSError) -> bool:
    """Return whether space on the disk would help."""
    return _number(error) in {errno.ENOSPC, errno.EDQUOT}


def _number(error: OSError) -> int | None:
    """Return the error number, which safetensors and shutil only put in their messages."""
    if getattr(error, "winerror", None) in _OF_WINDOWS:
        return _OF_WINDOWS[error.winerror]  # type: ignore[attr-defined]
    if error.errno is not None:
        return error.errno
    words = str(error).lower()
    if (found := _NUMBERED.search(words)) is not None:
        return int(found.group(1))
    return errno.ENOSPC if any(part in words for part in _IN_WORDS) else None


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    words = str(error).lower()
    return type(error).__name__ == "OutOfMemoryError" or (
        isinstance(error, RuntimeError) and ("out of memory" in words or "can't allocate" in words)
    )
