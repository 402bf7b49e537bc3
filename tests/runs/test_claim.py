"""At most one process holds a run."""

import os
import threading

import pytest

from tfm_core.runs import claim
from tfm_core.runs.process import ProcessMark, mark_of
from tfm_core.runs.status import Status, write_status

DEAD = ProcessMark(2**22 + 1, mark_of().host, 1.0)  # beyond the highest process number of Linux


def test_a_held_run_is_not_given_to_another(tmp_path, neighbour):
    assert claim.take(tmp_path, neighbour)
    assert not claim.take(tmp_path, mark_of())
    assert claim.take(tmp_path, neighbour)


def test_a_released_run_is_free(tmp_path, neighbour):
    claim.take(tmp_path, neighbour)
    claim.release(tmp_path, mark_of())
    assert not claim.take(tmp_path, mark_of())
    claim.release(tmp_path, neighbour)
    assert claim.take(tmp_path, mark_of())


def test_the_claim_of_a_dead_process_is_taken_over(tmp_path, neighbour):
    assert claim.take(tmp_path, DEAD)
    assert claim.take(tmp_path, mark_of())
    assert not claim.take(tmp_path, neighbour)


def test_a_claim_from_elsewhere_holds_while_its_heart_beats(tmp_path):
    elsewhere = ProcessMark(5, "another-machine")
    claim.take(tmp_path, elsewhere)
    write_status(tmp_path, Status("running", heartbeat=9e12))
    assert not claim.take(tmp_path, mark_of())
    write_status(tmp_path, Status("running", heartbeat=1.0))
    assert claim.take(tmp_path, mark_of())


@pytest.mark.parametrize("age", [-60, 60])
def test_an_empty_claim_holds_only_while_it_may_be_being_written(tmp_path, age):
    (tmp_path / "claims").mkdir()
    path = tmp_path / "claims" / "000001.json"
    path.touch()
    when = path.stat().st_mtime - age
    os.utime(path, (when, when))
    assert claim.take(tmp_path, mark_of()) == (age > 5)


def test_of_many_that_find_the_same_dead_claim_one_wins(tmp_path):
    claim.take(tmp_path, DEAD)
    # living processes that are not this one would do; marks of this one at other hosts are enough
    write_status(tmp_path, Status("running", heartbeat=9e12))
    barrier, won = threading.Barrier(8), []

    def race(number):
        barrier.wait()
        if claim.take(tmp_path, ProcessMark(number, "another-machine")):
            won.append(number)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
