"""The forecast before a run: exact where it counts, near where it estimates."""

import time
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

import tfm_core.training.estimate
from tests.training.test_loop import experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.training.estimate import estimate
from tfm_core.training.loop import build


@pytest.mark.parametrize("name", ["translate", "addition", "sort-at-once", "vit-digits"])
def test_parameters_are_those_of_the_model(name):
    chosen = PRESETS[name].experiment
    assert estimate(chosen).n_parameters == build(chosen).n_parameters


def test_huge_models_and_checkpointing_are_forecast():
    huge = experiment(
        "vit", "mnist-5000",
        model={"d_model": 4096, "n_heads": 32, "d_ff": 16384, "n_layers": 48},
    )  # fmt: skip
    begin = time.process_time()
    forecast = estimate(huge)
    assert forecast.n_parameters > 9e9
    assert not forecast.measured
    assert forecast.memory_bytes > 4 * 9e9
    assert time.process_time() - begin < 5  # building it would take minutes and 40 GB
    sizes = {"d_model": 1024, "n_heads": 8, "d_ff": 4096, "n_layers": 12}
    plain, other = (
        estimate(experiment("vit", "mnist-5000", model=sizes, training={"checkpointing": chosen}))
        for chosen in (False, True)
    )
    assert other.step_bytes < plain.step_bytes
    assert other.seconds_per_step == pytest.approx(4 / 3 * plain.seconds_per_step)


def test_what_a_gpu_cannot_measure_is_modelled_at_its_rate_not_that_of_a_cpu_core(monkeypatch):
    huge = experiment(model={"d_model": 4096, "n_heads": 32, "d_ff": 16384})
    of_cpu = estimate(huge)
    monkeypatch.setattr(tfm_core.training.estimate, "resolve", torch.device)
    of_gpu = estimate(huge, "cuda:0")
    assert not of_gpu.measured
    assert of_gpu.seconds == pytest.approx(of_cpu.seconds / 100)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU here")
def test_a_gpu_measures_what_a_cpu_core_would_take_too_long_for():
    wide = experiment(model={"d_model": 512, "n_heads": 8, "d_ff": 2048})
    assert not estimate(wide).measured
    assert estimate(wide, "cuda:0").measured


def test_what_others_do_meanwhile_is_no_part_of_a_step(monkeypatch):
    """On a CPU only the time of the probe's own thread counts, whoever else wants the processor."""
    ticks = iter(range(1000))
    clock = SimpleNamespace(thread_time=lambda: 0.5 * next(ticks))  # and no other clock
    monkeypatch.setattr(tfm_core.training.estimate, "time", clock)
    assert estimate(experiment(training={"steps": 12})).seconds_per_step == 0.5


@pytest.mark.parametrize(("precision", "kind"), [("fp32", torch.float32), ("bf16", torch.bfloat16),
                                                 ("fp16", torch.float16)])  # fmt: skip
def test_the_probe_runs_at_the_precision_of_the_run(precision, kind):
    kinds = set()
    hook = register_module_forward_hook(
        lambda module, _inputs, out: kinds.add(out.dtype) if isinstance(module, nn.Linear) else None
    )
    try:
        estimate(experiment(training={"precision": precision}))
    finally:
        hook.remove()
    assert kinds == {kind}
