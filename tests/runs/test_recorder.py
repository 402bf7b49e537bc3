"""What is written down of a run, and that its worker lives."""

import json

import pytest

from tests.runs.waiting import wait_until
from tfm_core.runs import claim
from tfm_core.runs.recorder import FIRST_STEPS, LINES, Recorder, keeps
from tfm_core.runs.status import Status


@pytest.mark.parametrize("total", [7, 600, 5000, 1_000_003])
def test_about_six_hundred_steps_beyond_the_first_hundred_are_written_down(total):
    kept = [step for step in range(1, min(total, 20_000) + 1) if keeps(step, total)]
    assert kept[:FIRST_STEPS] == list(range(1, min(total, FIRST_STEPS) + 1))
    assert len(kept) <= FIRST_STEPS + 2 * LINES
    assert keeps(total, total)


def test_the_heart_beats_while_nothing_happens(tmp_path):
    with Recorder(claim.Hold(tmp_path), Status("running")) as writer:
        writer.change("running")
        first = json.loads((tmp_path / "status.json").read_text())["heartbeat"]

        def beat():
            return json.loads((tmp_path / "status.json").read_text())["heartbeat"]

        wait_until(lambda: beat() > first, "the heart beats")
