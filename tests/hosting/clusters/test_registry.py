"""Which back end a host has chosen, and what it is refused."""

from __future__ import annotations

import sys

import pytest

from tfm_core.hosting.clusters import jobs
from tfm_core.hosting.clusters.jobs import Jobs
from tfm_core.hosting.clusters.ray import RayJobs
from tfm_core.hosting.clusters.slurm import Slurm
from tfm_core.runs import RunStore, settings
from tfm_core.runs.backends.backend import Unavailable
from tfm_core.runs.backends.local import LocalWorkers
from tfm_core.runs.backends.registry import devices
from tfm_core.runs.queue.run_queue import RunQueue

pytestmark = pytest.mark.quick
ADDRESS = "http://head:8265"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({}, None),
        ({"TFM_RAY_ADDRESS": ADDRESS}, RayJobs),
        ({"TFM_RAY_ADDRESS": ADDRESS, "TFM_BACKEND": "local"}, None),
        ({"TFM_BACKEND": "slurm", "TFM_RAY_ADDRESS": ADDRESS}, Slurm),
    ],
)
def test_the_host_chooses(store: RunStore, monkeypatch, said, kind) -> None:
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    queue = RunQueue(store, warm=0)
    if kind is None:
        assert isinstance(queue.backend, LocalWorkers)
        assert "cluster" not in " ".join(device.label for device in devices())
        return
    assert isinstance(queue.backend, Jobs)
    assert isinstance(queue.backend.cluster, kind)
    assert queue.max_running == jobs.PLACES
    assert [device.name for device in devices()] == ["cpu", "cuda:0"]
    assert all(device.available for device in devices())


def test_ray_needs_its_address() -> None:
    with pytest.raises(ValueError, match="set TFM_RAY_ADDRESS"):
        settings.read({"TFM_BACKEND": "ray"})


def test_a_server_without_ray_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Unavailable, match="pip install -r requirements-cluster"):
        RayJobs(ADDRESS).state("any")


def test_an_address_is_read_without_its_last_slash() -> None:
    said = settings.read({"TFM_RAY_ADDRESS": f"{ADDRESS}/"})
    assert (said.trains_on, said.ray_address) == ("ray", ADDRESS)


@pytest.mark.parametrize("bad", ["auto", "ray://head:10001", "head:8265", "http://a b"])
def test_what_is_no_address_of_a_dashboard_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"use an address such as http://HOST:8265\."):
        settings.read({"TFM_RAY_ADDRESS": bad})


def test_options_and_commands_are_words_of_a_shell() -> None:
    said = settings.read(
        {
            "TFM_SLURM_OPTIONS": "--partition=gpu --comment='two words'",
            "TFM_CLUSTER_PYTHON": "apptainer exec app.sif python",
        }
    )
    assert said.slurm_options == ("--partition=gpu", "--comment=two words")
    assert said.cluster_python == ("apptainer", "exec", "app.sif", "python")
