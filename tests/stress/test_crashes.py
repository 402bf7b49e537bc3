"""Kills, power cuts, suspended workers, competing servers and wrong clocks lose nothing.

A few cases of each stress test of ``benchmarks/stress``, in one process that forks.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nightly import IS_NIGHTLY

pytestmark = [
    pytest.mark.wide,
    pytest.mark.skipif(sys.platform != "linux", reason="forks as Linux does"),
]

N_KILLS, N_CUTS, N_SERVERS = (12, 6, 5) if IS_NIGHTLY else (4, 2, 3)
CASES = f"""
import json
from benchmarks.stress import clocks, kills, power, servers

print(json.dumps({{
    "kills": [[case.kills, case.failures] for case in kills.kill_runs({N_KILLS}, seed=3)],
    "power": [[cut.way, wrong] for cut, wrong in power.cut_power({N_CUTS}, seed=3)[1]],
    "clocks": clocks.set_clocks(steps=(-3600, 60)),
    "suspended": clocks.suspend(3.0)[3],
    "servers": [
        servers.share_folder({N_SERVERS}, seed=3, with_cli=with_cli).most
        for with_cli in (False, True)
    ],
    "served": servers.share_folder({N_SERVERS}, seed=4, with_cli=True).failures,
}}))
"""


@pytest.fixture(scope="module")
def found():
    """What each stress test found."""
    done = subprocess.run(
        [sys.executable, "-c", CASES],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_run_that_is_killed_at_any_writing_call_ends_bit_for_bit_the_same(found):
    assert sum(len(kills) for kills, _ in found["kills"]) >= N_KILLS
    assert [(kills, wrong) for kills, wrong in found["kills"] if wrong] == []


def test_a_run_goes_on_from_whatever_a_power_cut_leaves(found):
    assert len(found["power"]) == 3 * N_CUTS
    assert [(way, wrong) for way, wrong in found["power"] if wrong] == []


def test_a_clock_that_is_set_lets_no_second_worker_in(found):
    assert len(found["clocks"]) == 6
    assert [(whose, step, wrong) for whose, step, wrong in found["clocks"] if wrong] == []


def test_a_suspended_worker_goes_on_and_its_sleep_is_not_counted(found):
    assert found["suspended"] == []


def test_servers_of_one_folder_train_each_run_once_and_respect_their_limit_together(found):
    assert found["servers"] == [1, 1]
    assert found["served"] == []
