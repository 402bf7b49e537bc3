"""The figure of speed, through the frame: measure, read, stop, wait for others."""

import json

import psutil
import pytest

from pages.i18n import paragraph
from pages.learn.practice import speed
from tests.inspect.speed.test_bench import small
from tests.pages.looking import said
from tests.pages.opening import opened_at
from tests.runs.waiting import wait_until
from tfm_core.inspect.speed import measure as runners
from tfm_core.inspect.speed.measure import measure
from tfm_core.inspect.speed.report import COMPARISONS, BenchmarkCase, SpeedReport

PAGE = "learn/practice/page.py"


@pytest.fixture
def runner():
    """The measurements of the server, none of which runs behind the test."""
    yield runners
    for process in runners._current:
        process.stop()
        process.wait(180)


def opened(experiment=None, compare="attention"):
    at = opened_at(PAGE, draft=experiment or small("vit"), figure="speed")
    at.selectbox(key="speed-compare").set_value(compare).run()
    return at


def finished(at):
    """Draw the page, which starts what waits for its turn, and again after the measurement."""
    at.run()
    (process,) = runners._current
    wait_until(lambda: process.poll() and not process.is_running, "the measurement is over")
    at.run()
    assert not [one for one in at.button if one.key == "speed-stop"]
    return at


@pytest.mark.wide
def test_a_measurement_is_read_in_three_parts(store, runner):
    at = opened()
    assert "recorded" in said(at).lower()
    at.button(key="speed-start").click().run()
    finished(at)
    titles = [one.value for one in at.subheader]
    assert titles[:3] == ["1 · The same numbers?", "2 · What is gained", "3 · When not to use it"]
    assert "**Yes.**" in at.success[0].value
    assert "recorded" not in said(at).lower()
    assert "as fast" in said(at)


def test_stop_ends_it_and_says_so(store, runner):
    at = opened(compare="batch")
    at.button(key="speed-start").click().run()
    at.button(key="speed-stop").click().run()
    assert "Stopped by you." in at.warning[0].value
    assert not at.button(key="speed-start").disabled


@pytest.mark.wide
def test_who_comes_second_waits_with_a_sentence_and_can_leave(store, runner):
    at = opened()
    other = runner.start_measurement("checkpointing", small("vit"), "cpu")
    psutil.Process(other.pid).suspend()  # it is not done before it is told so
    at.button(key="speed-start").click().run()
    assert "Yours starts when it is done" in said(at)
    other.stop("Stopped.")
    other.wait(180)
    finished(at)
    assert "**Yes.**" in at.success[0].value


def test_every_comparison_opens_and_what_makes_no_sense_is_said(store):
    others = {one.value for one in opened_at(PAGE, draft=small("vit")).info}
    at = opened_at(PAGE, draft=small("vit"), figure="speed")
    for name in COMPARISONS:
        at.selectbox(key="speed-compare").set_value(name).run()
        assert not at.error
        assert len(at.code) >= len(COMPARISONS[name].code)
        has_button = bool([one for one in at.button if one.key == "speed-start"])
        assert has_button != bool({one.value for one in at.info} - others)
    at = opened(small("recurrent"), compare="attention")
    assert any("needs a Transformer" in one.value for one in at.info)


@pytest.mark.core(1)
@pytest.mark.parametrize("name", COMPARISONS)
def test_every_result_has_its_verdict(name):
    report = SpeedReport(name, "cpu", "CPU")
    measure(
        name,
        small("vit"),
        "cpu",
        lambda kind, **facts: report.take(json.dumps({"kind": kind, **facts})),
        count=1,
    )
    sentences = speed.verdict(report)
    assert len(sentences) >= 2
    assert sentences[-1] == paragraph(f"speed/rule-{name}")


def timed(name, sides, x=None, **facts):
    case = BenchmarkCase("work", dict.fromkeys(sides), x=x, facts=facts, seconds=dict(sides))
    return SpeedReport(name, "cpu", "CPU", cases=[case])


def test_the_verdict_follows_the_result():
    times = {
        "plain": [1.0, 1.1],
        "checkpointed": [1.5, 1.6],
        "bf16": [4.0, 4.1],
        "fp16": [0.5, 0.5],
    }
    report = timed("checkpointing", times)
    report.cases[0].n_bytes = {"plain": 4096, "checkpointed": 1024}
    said_ = " ".join(speed.verdict(report))
    assert "**4.0 times fewer bytes**" in said_
    assert "**bf16 autocast** was slower here" in said_
    assert "was 2.10x" in said_
    tie = {"explicit": [1.0, 1.0], "einsum": [1.0, 1.0], "math": [1.0, 1.0], "fused": [0.9, 1.1]}
    assert "made no clear difference" in " ".join(speed.verdict(timed("attention", tie)))
