"""Runs: folders that a worker process writes and everybody reads. Reading needs no torch.

In a notebook: ``runs.list()``, and ``run = runs.open("…")`` (see ``notebook``).
"""

from tfm_core.probe.types import Probe, Snapshot
from tfm_core.runs.curves import Curves, EventReader, Series
from tfm_core.runs.notebook import Attention, OpenedRun
from tfm_core.runs.notebook import list_runs as list
from tfm_core.runs.notebook import open_run as open
from tfm_core.runs.process.identity import ProcessId
from tfm_core.runs.run import Meta, Run, RunDamaged
from tfm_core.runs.status import Status
from tfm_core.runs.store import RunNotFound, RunStore

__all__ = [
    "Attention",
    "Curves",
    "EventReader",
    "Meta",
    "OpenedRun",
    "Probe",
    "ProcessId",
    "Run",
    "RunDamaged",
    "RunNotFound",
    "RunStore",
    "Series",
    "Snapshot",
    "Status",
    "list",
    "open",
]
