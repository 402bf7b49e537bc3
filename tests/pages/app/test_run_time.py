"""One time for one training: on Home's card, in the Train page's caption, and beside Start."""

import dataclasses
import os
import threading

import pytest

from pages.app import show
from pages.app.runs import run_time, runs_access
from tests.pages.looking import said
from tfm_core import machine
from tfm_core.background import Background
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.process.identity import this_host
from tfm_core.runs.status import write_status


@pytest.fixture
def _busy(monkeypatch):
    """Other work takes two thirds of the processor."""
    monkeypatch.setattr(machine, "slowdown", lambda *_what, **_how: 3.0)


@pytest.mark.usefixtures("_busy")
def test_every_page_says_the_time_of_a_busy_computer(open_page):
    experiment = PRESETS["translate"].experiment
    found = run_time.forecast(experiment, device="cpu")
    assert found.seconds == pytest.approx(3 * found.at(1.0).seconds)
    time = show.about(found.seconds)
    home = open_page()
    assert any(time in button.label for button in home.button)
    assert any("this computer is busy" in button.help for button in home.button)
    app = train_page(open_page, "translate")
    assert f"{time} (this computer is busy)" in said(app)
    assert "about 3 times the usual time" in said(app.button(key="presets-open").click().run())
    assert show.about(found.times(7).seconds) == run_time.forecast_text(
        run_time.in_sequence([experiment] * 7)
    )


def train_page(open_page, preset):
    app = open_page("train/page.py")
    app.selectbox(key="configure-preset").set_value(preset).run()
    run_time.wait()
    return app.run()


@pytest.mark.parametrize("name", ["vit-digits", "translate", "sentiment"])
def test_card_caption_and_start_say_the_same(open_page, name):
    time = run_time.estimate_text(PRESETS[name].experiment)
    assert time.startswith("about ")
    app = train_page(open_page, name)
    app.session_state["presets-teach"] = "all"
    app.button(key="presets-open").click().run()
    assert time in said(app)
    assert f"**{time}**" in said(app)


def test_a_run_that_finishes_is_learned_from_at_once(store):
    experiment = PRESETS["translate"].experiment
    before = run_time.forecast(experiment, device="cpu")
    assert not before.learned
    run = runs_access.store().create(experiment, state="running")
    assert run_time.forecast(experiment, device="cpu") == before
    assert "a short measurement" in run_time.estimate_source()
    took = 7 * before.seconds
    over = {"state": "finished", "seconds": took, "host": this_host()}
    file = run.folder / "status.json"
    time = file.stat().st_mtime_ns
    write_status(
        run.folder, dataclasses.replace(run.status, step=experiment.training.steps, **over)
    )
    os.utime(file, ns=(time, time))  # some clocks of files tick every 10 ms
    after = run_time.forecast(experiment, device="cpu")
    assert after.learned
    assert after.seconds > 2 * before.seconds
    assert "from 1 run on this computer" in run_time.estimate_source()


def test_a_device_on_which_nothing_finished_is_said_to_be_unknown(store, monkeypatch):
    monkeypatch.setattr(run_time.state, "device", lambda: "cuda:0")
    words = run_time.estimate_text(PRESETS["copy"].experiment)
    assert words == "time unknown on cuda:0"
    assert run_time.estimate_source().startswith("Times on cuda:0 are known after")


@pytest.fixture
def _asked_anew(monkeypatch):
    """The devices are looked for once a server."""
    monkeypatch.setattr(run_time, "MEASUREMENTS", Background("forecast"))


@pytest.mark.usefixtures("_asked_anew")
def test_a_gpu_of_a_cluster_can_be_chosen_and_is_not_measured_here(open_page, monkeypatch):
    monkeypatch.setenv("TFM_RAY_ADDRESS", "http://head:8265")
    app = open_page("train/page.py")
    app.selectbox(key="configure-preset").set_value("copy").run()
    run_time.wait()
    app.run()
    device = app.selectbox(key="start-device")
    assert device.options == ["Cluster CPU", "Cluster GPU"]
    device.set_value("cuda:0").run()
    run_time.wait()
    app.run()
    assert "**time unknown on cuda:0**" in said(app)
    assert "is not there" not in said(app)


def test_an_answer_and_a_sentence_are_worked_out_once_and_what_broke_is_asked_again(caplog):
    asked, calls = Background("questions"), []
    for _ in range(2):
        future = asked.ask("how long", lambda: calls.append(1) or 7).future
        assert future.result() == 7
    assert len(calls) == 1
    asked, calls = Background("questions"), []

    def refuse() -> None:
        calls.append(1)
        raise ValueError("There is no such device.")

    for _ in range(2):
        with pytest.raises(ValueError, match="no such device"):
            asked.ask("cuda:9", refuse).future.result()
    assert len(calls) == 1
    asked = Background("questions")

    def broken() -> None:
        raise RuntimeError("half loaded")

    with pytest.raises(RuntimeError, match="half loaded"):
        asked.ask("devices", broken).future.result()
    assert "Work behind a page failed" in caplog.text
    assert asked.ask("devices", lambda: "cpu").future.result() == "cpu"


def test_who_asks_once_more_waits_for_an_answer_as_long_as_there_is_patience():
    asked, begun = Background("questions"), threading.Event()
    asked.ask("first", lambda: None).future.result()

    def slow() -> int:
        begun.wait()
        return 7

    assert not asked.ask("slow", slow).future.done()
    threading.Timer(0.05, begun.set).start()
    assert asked.ask("slow", slow, patience=60.0).future.done()
