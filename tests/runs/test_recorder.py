"""What is written down of a run, and that its worker lives."""

import os

import pytest

from tests.runs.waiting import wait_until
from tfm_core.runs.process.identity import ProcessId, process_id
from tfm_core.runs.process.recorder import AwakeClock, Recorder, keeps
from tfm_core.runs.queue.hold import Hold, RunHeld
from tfm_core.runs.status import Status, read_status, write_status

FIRST_STEPS, LINES = 100, 600


@pytest.mark.parametrize("total", [7, 600, 5000, 1_000_003])
def test_about_six_hundred_steps_beyond_the_first_hundred_are_written_down(total):
    kept = [step for step in range(1, min(total, 20_000) + 1) if keeps(step, total)]
    assert kept[:FIRST_STEPS] == list(range(1, min(total, FIRST_STEPS) + 1))
    assert len(kept) <= FIRST_STEPS + 2 * LINES
    assert keeps(total, total)


def test_a_change_of_state_outlives_a_power_cut_and_a_heartbeat_need_not(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(file) or fsync(file))
    with Recorder(Hold(tmp_path), Status("running")) as writer:
        writer.change("running")
        assert len(synced) == 2, "the content, then the name"
        uptime = read_status(tmp_path).uptime
        wait_until(lambda: read_status(tmp_path).uptime > uptime, "the heart beats")
    assert len(synced) == 2


def test_a_worker_whose_run_was_taken_over_while_it_slept_writes_no_more(tmp_path):
    mine = Status("running").with_process(process_id())
    with Recorder(Hold(tmp_path), mine) as writer:
        writer.change("running")
        write_status(tmp_path, Status("running").with_process(ProcessId(3, "another-machine")))
        writer.record({"event": "step", "step": 1})
        writer.clock._asleep += 60.0  # as after a SIGSTOP
        with pytest.raises(RunHeld, match="Another worker took over this run"):
            writer.record({"event": "step", "step": 2})
    assert (tmp_path / "events.jsonl").read_text().count("\n") == 1


def test_a_gap_between_two_looks_is_sleep():
    now = 10.0
    clock = AwakeClock(lambda: now)
    begin = clock()
    for now in (10.5, 12.0, 72.0, 72.25):  # noqa: B007
        clock.look()
    assert clock() - begin == pytest.approx(2.25)
    assert clock.asleep == 60.0
