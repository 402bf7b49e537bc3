"""Forecasts: kept while they hold, made anew after a failure."""

import pytest

from pages.ui.run_time import ForecastQueue


def test_an_answer_is_worked_out_once() -> None:
    asked, calls = ForecastQueue(), []
    for _ in range(2):
        future = asked.ask("how long", lambda: calls.append(1) or 7)
        assert future.result() == 7
    assert len(calls) == 1


def test_a_sentence_is_kept_as_an_answer() -> None:
    asked, calls = ForecastQueue(), []

    def refuse() -> None:
        calls.append(1)
        raise ValueError("There is no such device.")

    for _ in range(2):
        with pytest.raises(ValueError, match="no such device"):
            asked.ask("cuda:9", refuse).result()
    assert len(calls) == 1


def test_what_broke_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    asked = ForecastQueue()

    def broken() -> None:
        raise RuntimeError("half loaded")

    with pytest.raises(RuntimeError, match="half loaded"):
        asked.ask("devices", broken).result()
    assert "A forecast failed" in caplog.text
    assert asked.ask("devices", lambda: "cpu").result() == "cpu"
