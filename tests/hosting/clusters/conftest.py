from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosting.clusters import fake_slurm
from tfm_core.hosting.clusters import jobs
from tfm_core.runs import RunStore
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue


@pytest.fixture(autouse=True)
def _looking_often(monkeypatch):
    monkeypatch.setattr(jobs, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(jobs, "DOWN_SECONDS", 0.0)


@pytest.fixture
def slurm(tmp_path, monkeypatch) -> Iterator[Path]:
    """The folder of a fake Slurm whose commands stand first on the PATH."""
    place = tmp_path / "bin"
    place.mkdir()
    script = place / "fake_slurm.py"
    shutil.copyfile(fake_slurm.__file__, script)
    for name in ("sbatch", "squeue", "scancel"):
        shell = f'#!/bin/sh\nexec "{sys.executable}" -S "{script}" {name} "$@"\n'
        (place / name).write_text(shell)
        (place / name).chmod(0o755)
    (place / "slurm").mkdir()
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TFM_BACKEND", "slurm")
    monkeypatch.setattr(fake_slurm, "FOLDER", place / "slurm")
    with fake_slurm.machine():
        yield place / "slurm"


@pytest.fixture
def queue(store: RunStore, slurm: Path):
    """A queue whose thread is the test."""
    made = RunQueue(store, limits=Limits())
    yield made
    made.close()
