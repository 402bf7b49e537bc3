"""Several processes train as one would: the same curve, and a run that either can go on with.

They talk over gloo on the CPU. On GPUs they talk over NCCL, which nobody has tried here.
"""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.processes import forking
from tests.runs.waiting import DEADLINE_SECONDS, wait_until
from tests.training.shared import CHOSEN
from tfm_core.cli import main
from tfm_core.runs import RunStore
from tfm_core.sentences import StudentError
from tfm_core.training.share import Replica

TOGETHER = [*("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")]
pytestmark = [pytest.mark.wide, pytest.mark.usefixtures("forked_all")]
TINY = [
    *("--set", "task.name=copy", "--set", "task.size=3", "--set", "task.n_train=40"),
    *("--set", "task.n_validation=11", "--set", "task.n_test=13"),
    *("--set", "model.d_model=8", "--set", "model.n_heads=2", "--set", "training.batch_size=5"),
    *("--set", "training.ema_decay=0.9"),
]


@pytest.fixture(scope="module")
def curves():
    """What two processes found together, and what one found alone, by experiment."""
    command = [sys.executable, *TOGETHER, "tests.training.shared"]
    with forking():
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CHOSEN)
def test_two_processes_make_the_curve_of_one(curves, name):
    """Batches are shared out unevenly, and so are tokens: a mean of means would be another number.

    In fp16 each part is rounded by itself.
    """
    (steps, measured), (alone, measured_alone) = curves[name]
    close = 1e-3 if name == "fp16" else 1e-5
    assert len(steps) == len(alone) == 6
    for one, other in zip([*steps, *measured], [*alone, *measured_alone], strict=True):
        assert one == pytest.approx(other, rel=close, abs=1e-6)


def test_every_example_is_one_process_part():
    for n in (2, 3, 5, 8):
        for size in (1, 2, 3):
            parts = [list(range(n))[Replica(rank, size).part(n)] for rank in range(size)]
            assert [one for part in parts for one in part] == list(range(n))
            assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_each_process_has_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert Replica(7, 8).device("cuda:0") == "cuda:3"
    assert Replica(7, 8).device("cpu") == "cpu"
    with pytest.raises(StudentError, match="cannot share mps"):
        Replica(0, 2).device("mps")


def test_a_run_of_several_is_stopped_and_goes_on_by_one_as_one_of_one(tmp_path, monkeypatch):
    """Paused, stepped and stopped by what its folder is asked, which the first process hears."""
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    store = RunStore(tmp_path / "runs", recorded=None)
    arguments = [*TINY, "--set", "training.steps=100000", "--set", "model.dropout=0"]
    process = subprocess.Popen(
        [sys.executable, *TOGETHER, "tfm_core", "train", *arguments, "--quiet"],
        env=dict(os.environ),
        stderr=subprocess.PIPE,
    )
    try:
        (run,) = wait_until(lambda: process.poll() is not None or store.list(), "the run is there")
        wait_until(lambda: run.status.step > 3, "it trains")
        run.request("pause")
        wait_until(lambda: run.status.state == "paused", "it pauses")
        step = run.status.step
        run.request("step")
        wait_until(lambda: run.status.step == step + 1, "it takes a step")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_SECONDS)
    finally:
        process.kill()
        process.wait()
    status = run.status
    assert (status.state, status.step, run.checkpoint_step) == ("stopped", step + 1, step + 1)

    steps = status.step + 4
    assert main(["further", run.id, "--steps", str(steps), "--quiet"]) == 0
    together = [sys.executable, *TOGETHER, "tfm_core", "further", run.id, "--steps", str(steps)]
    subprocess.run([*together, "--quiet"], check=True, timeout=DEADLINE_SECONDS)
    one, other = (each.curves() for each in store.list() if each.id != run.id)
    assert one.steps.last("step") == other.steps.last("step") == steps
    for column in ("loss", "accuracy", "grad_norm"):
        assert one.steps.last(column) == pytest.approx(other.steps.last(column), rel=1e-4)


def test_what_cannot_be_is_said_once_and_ends_all(tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    wrong, sentence = "training.batch_size=1", "2 processes cannot share a batch of 1"
    command = [sys.executable, *TOGETHER, "tfm_core", "train", *TINY, "--set", wrong, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode != 0
    assert done.stderr.count(sentence) == 1
