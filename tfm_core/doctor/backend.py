"""The back end: who trains the runs, and whether the cluster that does so answers."""

from __future__ import annotations

from tfm_core.doctor.finding import Finding
from tfm_core.runs import settings
from tfm_core.runs.backends.backend import Unavailable
from tfm_core.runs.backends.registry import cluster_of


def check_backend() -> Finding:
    """Ask the cluster, where there is one, what it is."""
    cluster = cluster_of(settings.read())
    if cluster is None:
        return Finding("backend", "ok", "local: processes of this machine train the runs.")
    try:
        words, differs = cluster.examined()
    except Unavailable as error:
        return Finding("backend", "problem", str(error))
    if differs:
        return Finding("backend", "warning", words, "Do: install the same release on both.")
    return Finding("backend", "ok", words)
