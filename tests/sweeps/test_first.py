"""A server's first sweep: its thread and a page both ask for Optuna, which neither has loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TWO_THREADS = """
import sys, threading, time
from pathlib import Path
from tests.sweeps.made import a_plan
from tfm_core.plots.training import sweeps as plots
from tfm_core.sweeps.store import SweepStore
from tfm_core.sweeps.study import Study

assert "optuna" not in sys.modules
plan = a_plan()
sweep = SweepStore(Path(sys.argv[1])).create(plan)
both = threading.Barrier(2)

def page():
    both.wait()
    plots.figures(plan, [])

def driver():
    both.wait()
    time.sleep(float(sys.argv[2]))
    Study(sweep, plan).suggestion()

threads = [threading.Thread(target=work) for work in (page, driver)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("later", [0.0, 0.05, 0.1])
def test_a_page_and_the_driver_may_load_optuna_at_once(tmp_path: Path, later: float) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWO_THREADS, str(tmp_path), str(later)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
