"""The measuring process: it starts, reports, stops, and ends with its time and its watcher."""

import psutil
import pytest

from tests.inspect.speed.test_bench import small
from tests.runs.waiting import wait_until
from tfm_core.choices.config import Experiment
from tfm_core.inspect.speed.measure import BenchmarkProcess, Busy, start_measurement
from tfm_core.inspect.speed.report import is_equal

LONG = 600.0
ENOUGH_TO_START = 1.5e9
"""Bytes in which torch is loaded and the model made, on any machine, but no large batch."""


def is_gone(measurement):
    return not measurement.is_running and not psutil.pid_exists(measurement.pid)


def test_a_measurement_reports_until_it_is_done():
    measurement = BenchmarkProcess("attention", small("vit"), "cpu", patience=LONG)
    report = measurement.wait(LONG)
    assert report.problem is None
    assert report.is_complete
    assert 0 < report.done <= report.total
    assert all(is_equal(one) for one in report.cases[0].equalities)
    assert is_gone(measurement)


def test_stop_ends_the_process_and_gives_the_place_back():
    first = start_measurement("attention", small("vit"), "cpu")
    with pytest.raises(Busy, match="Yours starts when it is done"):
        start_measurement("attention", small("vit"), "cpu")
    first.stop("Stopped.")
    assert first.wait(LONG).problem == "Stopped."
    wait_until(lambda: is_gone(first), "the process is gone")
    second = start_measurement("attention", small("vit"), "cpu")
    second.stop("Stopped again.")
    assert second.wait(LONG).problem == "Stopped again."


def test_a_measurement_ends_with_its_time_and_its_watcher():
    measurement = BenchmarkProcess("batch", small("vit"), "cpu", limit=0.5, patience=LONG)
    assert "the limit" in (measurement.wait(LONG).problem or "")
    wait_until(lambda: is_gone(measurement), "the process is gone")
    measurement = BenchmarkProcess("batch", small("vit"), "cpu", patience=0.3)
    wait_until(lambda: not measurement.is_running, "it has ended")
    assert measurement.poll().problem == "Stopped because nobody was watching."
    measurement = BenchmarkProcess("batch", small("vit"), "cpu", patience=LONG)
    measurement._process.stdin.close()  # as if the server were gone
    report = measurement.wait(LONG)
    assert not report.is_complete
    assert is_gone(measurement)


@pytest.mark.wide
def test_a_batch_too_large_for_the_machine_is_a_sentence():
    values = small("vit").model_dump()
    values["model"] |= {"patch_size": 1, "n_heads": 16, "d_model": 64, "n_layers": 8}
    values["training"]["batch_size"] = 4000
    share = ENOUGH_TO_START / psutil.virtual_memory().available
    measurement = BenchmarkProcess(
        "attention", Experiment.parse(values), "cpu", patience=LONG, memory_share=share
    )
    assert "The memory of cpu is not enough" in (measurement.wait(LONG).problem or "")
    assert is_gone(measurement)
