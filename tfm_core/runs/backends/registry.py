"""Which back end a server has, as its host said (TFM_BACKEND, TFM_RAY_ADDRESS)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tfm_core.runs import settings
from tfm_core.runs.backends.backend import Backend
from tfm_core.runs.backends.cluster import Cluster, Jobs
from tfm_core.runs.backends.local import LocalWorkers
from tfm_core.runs.backends.ray import RayJobs
from tfm_core.runs.backends.slurm import Slurm
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.settings import Settings
from tfm_core.sentences import N_
from tfm_core.training import gpu_helper
from tfm_core.training.devices import Device


def chosen(root: Path, limits: Limits, *, warm: int | None, wake: Callable[[], None]) -> Backend:
    """Return the back end that trains the runs of a folder; for the rest see ``LocalWorkers``."""
    cluster = cluster_of(settings.read())
    if cluster is None:
        return LocalWorkers(root, limits, warm=warm, wake=wake)
    return Jobs(root, limits, cluster)


def cluster_of(said: Settings) -> Cluster | None:
    """Return the cluster that the host named, None where this machine trains."""
    if said.trains_on == "ray":
        assert said.ray_address is not None, "settings.read has refused this"
        return RayJobs(said.ray_address)
    return Slurm(said.slurm_options) if said.trains_on == "slurm" else None


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
