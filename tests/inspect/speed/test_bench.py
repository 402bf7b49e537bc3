"""Speed: both sides of every comparison give the same, for every family; bytes are counted."""

import inspect
import json
from importlib import import_module

import pytest
import torch

from tests.training.test_loop import experiment
from tfm_core.choices.config import MODEL_CONFIGS, tasks_for
from tfm_core.inspect.speed.bench import (
    Bench,
    backend_name,
    check_size,
    checkpointed,
    saved_bytes,
)
from tfm_core.inspect.speed.measure import cases_of, measure
from tfm_core.inspect.speed.report import COMPARISONS, SpeedReport, is_equal
from tfm_core.inspect.syntax import source_of
from tfm_core.layers.attention import attention_weights, fused_attention
from tfm_core.runs.store import RECORDED

FAMILIES = list(MODEL_CONFIGS)


def small(family, **model):
    task = next(iter(tasks_for(family)))
    return experiment(family, task, model=model)


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def pairs():
    """Return each comparison with two of the families that it makes sense for."""
    for number, name in enumerate(COMPARISONS):
        order = [FAMILIES[(number + step) % len(FAMILIES)] for step in range(len(FAMILIES))]
        able = [one for one in order if not COMPARISONS[name].why_not(small(one))]
        yield from ((family, name) for family in able[:2])


@pytest.mark.core(5)
@pytest.mark.parametrize(("family", "name"), list(pairs()))
def test_all_sides_give_the_same(family, name):
    chosen = small(family, dropout=0.1)
    sides = COMPARISONS[name].sides
    for case in cases_of(name, Bench.of(chosen)):
        assert case.equalities
        for one in case.equalities:
            assert is_equal(one), one
        assert next(iter(case.sides)) == next(iter(sides))
        assert set(case.sides) <= set(sides)
        for side in case.sides.values():
            side()


@pytest.mark.parametrize("family", FAMILIES)
def test_checkpointing_saves_fewer_bytes_and_leaves_nothing_behind(family):
    if COMPARISONS["checkpointing"].why_not(small(family)):
        return
    bench = Bench.of(small(family))
    plain = saved_bytes(bench.pass_)
    fewer = saved_bytes(lambda: bench.pass_(lambda: checkpointed(bench.model)))
    assert 0 < fewer < plain
    assert saved_bytes(bench.pass_) == plain


def test_the_code_shown_runs_and_wrong_sides_are_found_out():
    x = torch.randn(5, 7, requires_grad=True)
    weight = torch.nn.Parameter(torch.randn(7, 3))
    assert saved_bytes(lambda: x.exp()) == 5 * 7 * 4  # its own result
    assert saved_bytes(lambda: x @ weight) == 5 * 7 * 4  # x; weights are not counted
    assert saved_bytes(lambda: (x * x, x.sin())) == 5 * 7 * 4  # one tensor, however often
    assert saved_bytes(lambda: x + 1) == 0
    bench = Bench.of(small("vit", dropout=0.3))
    assert torch.equal(bench.pass_(), bench.pass_())
    assert bench.experiment.task.shift == 0
    with pytest.raises(ValueError, match="parameters; the limit is 50,000,000"):
        check_size(small("encoder-only", d_model=4096, n_heads=4, d_ff=4096, n_layers=4))
    for name in COMPARISONS:
        for path in COMPARISONS[name].code.values():
            module, _colon, function = path.partition(":")
            shown = getattr(import_module(module), function)
            assert source_of(path) == inspect.getsource(shown).rstrip("\n")
    assert not is_equal({"difference": 0.1, "tolerance": 0.01})
    assert not is_equal({"difference": float("nan"), "tolerance": 1.0})
    q = torch.randn(2, 3, 5, 8, requires_grad=True)
    assert backend_name(fused_attention(q, q, q)) == "flash, for CPU"
    assert backend_name(attention_weights(q, q) @ q) == "math, step by step"


@pytest.mark.parametrize(
    "path", sorted(RECORDED.parent.glob("speed-*.jsonl")), ids=lambda path: path.stem
)
def test_a_factor_is_the_quotient_of_the_times_beside_it(path):
    report = SpeedReport("recorded", "cpu", "CPU")
    for line in path.read_text().splitlines():
        report.take(line)
    assert report.timed
    for case in report.timed:
        for side in list(case.sides)[1:]:
            gain = case.gain(side)
            shown = [round(1000 * case.time(one).median, 4) for one in (case.reference, side)]
            assert gain.median == pytest.approx(shown[0] / shown[1], rel=0.005)
            assert gain.low <= gain.median <= gain.high


@pytest.mark.wide
def test_a_report_holds_what_was_measured():
    report = SpeedReport("checkpointing", "cpu", "CPU")

    def say(kind, **facts):
        report.take(json.dumps({"kind": kind, **facts}))

    measure("checkpointing", small("encoder-decoder"), "cpu", say, count=2)
    report.take("a library says something")
    report.take("[1]")
    assert report.is_complete
    assert report.peak_bytes > 0
    (case,) = report.timed
    assert all(is_equal(one) for one in case.equalities)
    assert case.gain("plain").median == 1.0
