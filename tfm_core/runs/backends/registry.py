"""The back end of a server, as TFM_BACKEND and TFM_RAY_ADDRESS say.

Clusters are loaded by name from ``tfm_core.hosting``, and only where the host has one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import cast

from tfm_core.runs import settings
from tfm_core.runs.backends.backend import Backend, Cluster
from tfm_core.runs.backends.local import LocalWorkers
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.settings import Settings
from tfm_core.sentences import N_
from tfm_core.training import gpu_helper
from tfm_core.training.devices import Device

_JOBS = "tfm_core.hosting.clusters.jobs:Jobs"
_CLUSTERS = {
    "ray": "tfm_core.hosting.clusters.ray:RayJobs",
    "slurm": "tfm_core.hosting.clusters.slurm:Slurm",
}


def chosen(root: Path, limits: Limits, *, warm: int | None, wake: Callable[[], None]) -> Backend:
    """Return the back end that trains the runs of a folder; for the rest see ``LocalWorkers``."""
    cluster = cluster_of(settings.read())
    if cluster is None:
        return LocalWorkers(root, limits, warm=warm, wake=wake)
    return cast("Backend", resolve_name(_JOBS)(root, limits, cluster))


def cluster_of(said: Settings) -> Cluster | None:
    """Return the cluster that the host named, None where this machine trains."""
    if said.trains_on == "local":
        return None
    given = said.ray_address if said.trains_on == "ray" else said.slurm_options
    return cast("Cluster", resolve_name(_CLUSTERS[said.trains_on])(given))


def devices() -> list[Device]:
    """Return what a run can be trained on: by this machine, or, unlooked, by a job of a cluster.

    A job sees the one GPU that it was given as cuda:0; one that waits for what its cluster doesn't
    have waits on.
    """
    if settings.read().trains_on == "local":
        return gpu_helper.devices()
    return [
        Device("cpu", N_("Cluster CPU"), thread_choices=(1, 2, 4, 8)),
        Device("cuda:0", N_("Cluster GPU")),
    ]
