"""At most one process holds a run."""

import errno
import json
import os
import subprocess
import sys
import threading
import time

import psutil
import pytest

from tfm_core.runs.process import identity
from tfm_core.runs.process.identity import ProcessId, process_id
from tfm_core.runs.queue import claim
from tfm_core.runs.status import Status, read_status, write_status

DEAD = ProcessId(2**22 + 1, process_id().host, 1.0)  # beyond the highest process number of Linux

ELSEWHERE = ProcessId(3, "another-machine")


def test_a_held_run_is_free_once_it_is_released_or_its_process_dead(tmp_path, neighbour):
    assert claim.take(tmp_path, neighbour)
    assert not claim.take(tmp_path, process_id())
    assert claim.take(tmp_path, neighbour)
    claim.take(tmp_path, neighbour)
    claim.release(tmp_path, process_id())
    assert not claim.take(tmp_path, process_id())
    claim.release(tmp_path, neighbour)
    assert claim.take(tmp_path, process_id())


def test_the_claim_of_a_dead_process_is_taken_over(tmp_path, neighbour):
    assert claim.take(tmp_path, DEAD)
    assert claim.take(tmp_path, process_id())
    assert not claim.take(tmp_path, neighbour)


def test_a_claim_from_elsewhere_holds_while_its_heart_beats(tmp_path):
    claim.take(tmp_path, ELSEWHERE)
    write_status(tmp_path, Status("running", heartbeat=time.time()))
    assert not claim.take(tmp_path, process_id())
    write_status(tmp_path, Status("running", heartbeat=time.time() - identity.STALE_SECONDS))
    assert claim.take(tmp_path, process_id())


@pytest.mark.parametrize("step", [-31_536_000, -60, 60, 31_536_000])
def test_a_clock_that_is_set_lets_no_second_worker_in(tmp_path, neighbour, monkeypatch, step):
    assert claim.take(tmp_path, neighbour)
    mark = {"pid": neighbour.pid, "host": neighbour.host, "started": neighbour.started}
    write_status(tmp_path, Status("running", **mark))
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + step)
    assert read_status(tmp_path).state == "running"
    assert not claim.take(tmp_path, process_id())


@pytest.mark.parametrize("age", [-60, 60])
@pytest.mark.parametrize("content", ["", '{"pid": 4', '{"pid": -1}', "[]"])
def test_half_a_claim_holds_nothing_whatever_the_clock_says(tmp_path, age, content):
    """A disk without links can leave one."""
    (tmp_path / "claims").mkdir()
    path = tmp_path / "claims" / "000001.json"
    path.write_text(content)
    when = path.stat().st_mtime - age
    os.utime(path, (when, when))
    assert claim.take(tmp_path, process_id())
    assert not claim.take(tmp_path, ELSEWHERE)


def test_a_claim_tells_a_process_by_when_it_was_created(tmp_path, neighbour):
    created = psutil.Process(neighbour.pid).create_time()
    old = {"pid": neighbour.pid, "host": neighbour.host, "created": created}
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "000007.json").write_text(json.dumps(old))
    assert not claim.take(tmp_path, process_id())
    (tmp_path / "claims" / "000008.json").write_text(json.dumps(old | {"created": created - 60}))
    assert claim.take(tmp_path, process_id())


def test_a_claim_that_cannot_be_written_leaves_the_run_free(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", full)
        with pytest.raises(OSError, match="No space left"):
            claim.take(tmp_path, process_id())
    assert list((tmp_path / "claims").iterdir()) == []
    assert claim.take(tmp_path, ELSEWHERE)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL], ids=["Unix", "Windows"])
def test_a_disk_without_links_has_claims_too(tmp_path, neighbour, monkeypatch, number):
    def none(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", none)
    assert claim.take(tmp_path, neighbour)
    assert not claim.take(tmp_path, process_id())


def test_a_claim_is_released_on_a_full_disk(tmp_path, monkeypatch):
    assert claim.take(tmp_path, process_id())
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        claim.release(tmp_path, process_id())
    assert claim.take(tmp_path, ELSEWHERE)


LOCKS = """
import sys, pathlib
from tfm_core.runs.queue import claim
hold = claim.Hold(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_lock_holds_a_run_whatever_is_known_of_its_process(tmp_path):
    """As one in another container, whose processes cannot be seen from here."""
    worker = subprocess.Popen(
        [sys.executable, "-c", LOCKS, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert worker.stdout.readline() == "held\n"
    (path,) = (tmp_path / "claims").glob("*.json")
    path.write_text(json.dumps({"pid": DEAD.pid, "host": DEAD.host, "created": 1.0}))
    assert not claim.take(tmp_path, process_id())
    with pytest.raises(claim.RunHeld):
        claim.Hold(tmp_path)

    worker.kill()
    worker.communicate()
    claim.Hold(tmp_path).release()


def test_of_many_that_find_the_same_dead_claim_one_wins(tmp_path):
    claim.take(tmp_path, DEAD)
    write_status(tmp_path, Status("starting", heartbeat=time.time()))
    # living processes that are not this one would do; marks of this one at other hosts are enough
    barrier, won = threading.Barrier(8), []

    def race(number):
        barrier.wait()
        if claim.take(tmp_path, ProcessId(number, "another-machine")):
            won.append(number)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
