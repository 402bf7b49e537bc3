"""Questions about GPUs are answered in another process, so that the server holds none."""

import os
import signal
import subprocess
import sys

import pytest
import torch

from tests.runs.waiting import wait_until
from tests.training.test_loop import experiment
from tfm_core.choices.config import to_json
from tfm_core.runs.queue import resources
from tfm_core.sentences import StudentError
from tfm_core.training import devices as machine
from tfm_core.training import gpu_helper
from tfm_core.training.gpu_helper import Helper


@pytest.fixture
def helper():
    helper = Helper()
    yield helper
    helper.close()
    assert not helper.is_running


def test_another_process_gives_the_answers_of_this_one_and_refuses_in_its_words(helper):
    assert [one.name for one in helper.ask("devices")] == [one.name for one in machine.devices()]
    found = helper.ask("estimate", to_json(experiment()), "cpu")
    here = gpu_helper.estimate(experiment(), "cpu")
    assert (found.n_parameters, found.step_bytes) == (here.n_parameters, here.step_bytes)
    assert found.seconds_per_step > 0
    with pytest.raises(StudentError, match="Unknown device 'abacus'") as refused:
        helper.ask("estimate", to_json(experiment()), "abacus")
    assert refused.value.sentence.values == {"name": "abacus"}


def test_a_process_that_died_is_started_again(helper):
    helper.ask("devices")
    os.kill(helper._process.pid, signal.SIGKILL)
    helper._process.wait()
    assert helper.ask("devices")
    with pytest.raises(RuntimeError, match="IndexError"):
        helper.ask("estimate")


def test_it_ends_when_nothing_more_is_asked():
    helper = Helper(idle_seconds=0.0)
    assert helper.ask("devices")
    wait_until(lambda: helper._process is None, "the helper is gone")


def test_a_server_with_a_gpu_asks_the_helper_and_one_without_asks_nobody(monkeypatch):
    asked = []
    monkeypatch.setattr(gpu_helper.HELPER, "ask", lambda *question: asked.append(question[0]) or [])
    gpu_helper.devices()
    assert asked == []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert gpu_helper.devices() == []
    assert gpu_helper.estimate(experiment(), "cuda:0") == []
    assert resources.memory_of("cuda:0") is None
    assert asked == ["devices", "estimate", "devices"]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(machine, "devices", list)
    assert gpu_helper.devices() == []
    assert len(asked) == 3, "a process that has its GPU looks itself"


@pytest.mark.usefixtures("forked_all")
def test_the_helper_ends_with_whoever_asked():
    code = (
        "from tfm_core.training.gpu_helper import HELPER; HELPER.ask('devices');"
        "print(HELPER._process.pid, flush=True); import os; os._exit(0)"
    )
    pid = int(subprocess.check_output([sys.executable, "-c", code]))
    wait_until(lambda: _is_gone(pid), "the helper is gone")


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    import psutil

    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
