"""Making it fast, through the frame: measure, read, stop, wait for others, download."""

import json

import psutil
import pytest

from pages.i18n import paragraph
from pages.speed import state, words
from tests.inspect.speed.test_registry import small
from tests.pages.looking import revealed, said
from tests.pages.opening import opened_at
from tests.runs.waiting import wait_until
from tfm_core.inspect.speed.measure import measure
from tfm_core.inspect.speed.registry import COMPARISONS
from tfm_core.inspect.speed.report import CaseReport, SpeedReport

PAGE = "speed/page.py"


@pytest.fixture
def runner():
    """The runner of the server, empty again behind the test."""
    runner = state.runner()
    yield runner
    runner.close()
    if runner._current is not None:
        runner._current.wait(180)


def opened(experiment=None, compare="data"):
    at = opened_at(PAGE, draft=experiment or small("vit"))
    at.selectbox(key="speed-compare").set_value(compare).run()
    return at


def finished(at):
    """Draw the page, which starts what waits for its turn, and again after the measurement."""
    at.run()
    process = state.runner()._current
    wait_until(lambda: process.poll() and not process.is_running, "the measurement is over")
    at.run()
    assert not [one for one in at.button if one.key == "speed-stop"]
    return at


def guessed(at):
    """Ask for the answers to the questions that stand before a result, one after another."""
    while any(one.label == "Show the answer" for one in at.button):
        revealed(at)
    return at


@pytest.mark.wide
def test_a_measurement_is_read_in_three_parts(store, runner):
    at = opened()
    assert "Nothing measured yet" in said(at)
    at.button(key="speed-start").click().run()
    finished(at)
    assert "2 · What is gained" not in [one.value for one in at.header]
    guessed(at)
    assert not at.exception
    titles = [one.value for one in at.header]
    assert titles[:3] == ["1 · The same numbers?", "2 · What is gained", "3 · When not to use it"]
    assert "bit for bit" in at.success[0].value
    assert "as fast" in said(at)
    (download,) = at.get("download_button")
    assert download.proto.label == "Every round, as CSV"


def test_stop_ends_it_and_says_so(store, runner):
    at = opened(compare="length")
    at.button(key="speed-start").click().run()
    at.button(key="speed-stop").click().run()
    assert not at.exception
    if not at.warning:  # something was measured before the stop
        guessed(at)
    assert "Stopped by you." in at.warning[0].value
    assert not at.button(key="speed-start").disabled


@pytest.mark.wide
def test_who_comes_second_waits_with_a_sentence_and_can_leave(store, runner):
    at = opened()
    other = runner.begin("length", small("vit"), "cpu")
    psutil.Process(other.pid).suspend()  # it is not done before it is told so
    at.button(key="speed-start").click().run()
    assert "yours begins when that one is done" in said(at)
    other.stop("Stopped.")
    other.wait(180)
    guessed(finished(at))
    assert "bit for bit" in at.success[0].value


def test_every_comparison_opens_with_its_code(store):
    at = opened_at(PAGE, draft=small("vit"))
    for name in COMPARISONS:
        at.selectbox(key="speed-compare").set_value(name).run()
        assert not at.exception, name
        assert not at.error
        assert len(at.code) >= len(COMPARISONS[name].code)
        has_button = bool([one for one in at.button if one.key == "speed-start"])
        assert has_button != bool(at.info)


def test_what_makes_no_sense_here_is_said(store):
    at = opened(small("decoder-only"), compare="patches")
    assert "needs patches" in at.info[0].value


@pytest.mark.core(1)
@pytest.mark.parametrize("name", [name for name in COMPARISONS if name not in {"compile", "gpu"}])
def test_every_result_has_its_verdict(name):
    why = COMPARISONS[name].why_not(small("vit"), "cpu")
    if why is not None:  # one core alone has nothing to share out
        pytest.skip(why)
    report = SpeedReport(name, "cpu", "CPU")
    measure(
        name,
        small("vit"),
        "cpu",
        lambda kind, **facts: report.take(json.dumps({"kind": kind, **facts})),
        count=1,
    )
    sentences = words.verdict(report)
    assert len(sentences) >= 2
    assert sentences[-1] == paragraph(f"speed/rule-{name}")


def timed(name, sides, x=None, **facts):
    case = CaseReport("work", tuple(sides), x, facts=facts, seconds=dict(sides))
    return SpeedReport(name, "cpu", "CPU", cases=[case])


def test_the_verdict_follows_the_result():
    slower = timed("precision", {"fp32": [1.0, 1.1], "bf16": [4.0, 4.1], "fp16": [0.5, 0.5]})
    said_ = " ".join(words.verdict(slower))
    assert "**bf16 autocast** was slower here" in said_
    assert "was 2.10x" in said_
    pays = timed("compile", {"eager": [0.02], "compiled": [0.01]}, first_seconds=1.0)
    assert "**99 passes**" in " ".join(words.verdict(pays))
    never = timed("compile", {"eager": [0.01], "compiled": [0.02]}, first_seconds=1.0)
    assert "**not faster** afterwards" in " ".join(words.verdict(never))
    gpu = timed("gpu", {"cpu": [2.0], "gpu": [1.0]}, 64.0)
    assert "from a batch of **64**" in " ".join(words.verdict(gpu))
    tie = timed("loops", {"loops": [1.0, 1.0], "at once": [0.9, 1.1]})
    assert "made no clear difference" in " ".join(words.verdict(tie))


def test_the_einsums_are_compared_in_words():
    times = {"explicit": [0.2, 0.2], "einsum": [0.1, 0.1], "math": [0.2, 0.2], "fused": [0.1, 0.1]}
    said_ = " ".join(
        words.verdict(timed("attention", times, backend="flash", shape="(1, 1, 2, 2)"))
    )
    assert "`nqhd,nkhd->nhqk` for the scores and `nhql,nlhd->nqhd` for the sum" in said_
    assert "2.00x" in said_ or "2x" in said_
