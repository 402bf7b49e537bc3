"""A run whose worker is killed as it changes a file goes on to the same end, bit for bit."""

import random
import signal
import subprocess
import sys

import pytest

from tests.nightly import only_nightly
from tests.runs.comparing import assert_same
from tests.runs.waiting import tiny
from tfm_core.runs import Run
from tfm_core.runs.process.execute import execute

pytestmark = [
    pytest.mark.wide,
    only_nightly,
    pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL"),
]

N_KILLS = 12
WORKER = """
import os, signal, sys
from pathlib import Path
from tfm_core.runs import Run
from tfm_core.runs.process import execute

folder, last = sys.argv[1], int(sys.argv[2])
execute.CHECKPOINT_SECONDS, execute.CHECKPOINT_SHARE = 0.0, 0  # a checkpoint a step
n_changes = 0

def watch(event, values):
    global n_changes
    opens = event == "open" and values[2] & (os.O_WRONLY | os.O_RDWR)
    changes = event in {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir"}
    if (opens or changes) and str(values[0]).startswith(folder):
        n_changes += 1
        if n_changes == last:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
execute.execute(Run(Path(folder)))
print(n_changes)
"""


def train_until(run: Run, change: int) -> subprocess.CompletedProcess[str]:
    """Train a run in a process of its own until its nth change of a file; 0 is never."""
    command = [sys.executable, "-c", WORKER, str(run.folder), str(change)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_run_that_is_killed_at_any_change_of_a_file_ends_bit_for_bit_the_same(store, whole):
    n_changes = int(train_until(store.create(tiny()), 0).stdout)
    most = 9 * n_changes // 10  # how often its state is written depends on the machine
    for change in random.Random(11).sample(range(1, most), N_KILLS):
        run = store.create(tiny())
        killed = train_until(run, change)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert run.problem is None
        assert execute(Run(run.folder)).state == "finished"
        assert_same(run, whole)
        names = [path.name for path in run.folder.rglob("*")]
        assert not [name for name in names if name.startswith(".") or name.endswith(".new")]
