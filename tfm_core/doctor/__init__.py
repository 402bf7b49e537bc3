"""The doctor: checks everything that the app needs, prints a line each, and repairs."""

from __future__ import annotations

from collections.abc import Iterator

from tfm_core.doctor.checks import (
    Finding,
    check_backend,
    check_devices,
    check_disk,
    check_folder,
    check_mnist,
    check_store,
    check_torchvision,
    check_variables,
    check_versions,
)
from tfm_core.doctor.runs import check_claims, check_leftovers, check_line, check_runs
from tfm_core.runs.shared_store import shared_store
from tfm_core.runs.store import RunStore

__all__ = ["Finding", "examine"]


def examine(*, mends: bool) -> Iterator[Finding]:
    """Yield what each check finds, one after the other. Raises OSError where mending fails."""
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
    if (shared := shared_store()) is not None:
        yield check_store(shared)
    yield check_disk(store)
    yield check_runs(store)
    yield check_line(store, mends=mends)
    yield check_claims(store, mends=mends)
    yield check_leftovers(store, mends=mends)
