"""The doctor: checks everything that the app needs, and prints a line each."""

from __future__ import annotations

from collections.abc import Iterator

from tfm_core.doctor.checks import (
    Finding,
    check_backend,
    check_devices,
    check_disk,
    check_folder,
    check_mnist,
    check_runs,
    check_torchvision,
    check_variables,
    check_versions,
)
from tfm_core.runs.store import RunStore

__all__ = ["Finding", "examine"]


def examine() -> Iterator[Finding]:
    """Yield what each check finds, one after the other."""
    variables = check_variables()
    yield variables
    yield check_versions()
    yield check_torchvision()
    yield check_devices()
    yield check_mnist()
    if variables.level == "problem":  # the folder of runs is unknown
        return
    yield check_backend()
    store = RunStore()
    yield check_folder(store)
    yield check_disk(store)
    yield check_runs(store)
