"""Where a training runs, what it waits for, what it holds, and how long it takes."""

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

import tfm_core.training.estimate
from tests.runs.waiting import wait_until
from tests.training.far_device import DEVICE, step_of
from tests.training.test_language import language
from tests.training.test_loop import (
    EXPERIMENTS,
    HALVED,
    IDS,
    experiment,
    goes_on_with_the_same_curve,
    records,
)
from tfm_core.choices.config import ConfigError, to_json
from tfm_core.choices.presets import PRESETS
from tfm_core.data.moving import to_device_together
from tfm_core.layers.attention import fused_attention
from tfm_core.layers.blocks import Block
from tfm_core.layers.relative import alibi_bias
from tfm_core.runs.process.execute import set_up_torch
from tfm_core.runs.queue import limits
from tfm_core.sentences import StudentError
from tfm_core.training import devices as machine
from tfm_core.training import gpu_helper, setup
from tfm_core.training import trainer as trainers
from tfm_core.training.devices import (
    devices,
    fastest_threads,
    measure_threads,
    memory_used,
    resolve,
)
from tfm_core.training.estimate import estimate
from tfm_core.training.events import Step
from tfm_core.training.gpu_helper import Helper
from tfm_core.training.loop import build, train
from tfm_core.training.progress import TrainingDiverged

FOUND = devices()


def test_the_cpu_is_there_and_measuring_threads_changes_nothing():
    assert FOUND[0].available
    (cpu,) = [device for device in FOUND if device.name == "cpu"]
    assert cpu.available
    assert 0 < cpu.memory_free <= cpu.memory_total
    assert cpu.thread_choices[0] == 1
    for name in ["", "abacus", "cuda:x", "cuda:-1", "CPU", "tpu:0"]:
        with pytest.raises(ValueError, match=r"Unknown device .* use cpu, cuda:0"):
            resolve(name)
    before = torch.get_num_threads()
    took = measure_threads((1, 2), repeats=2)
    assert took.keys() == {1, 2}
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("device", FOUND, ids=lambda device: device.name)
def test_a_device_resolves_or_says_why_it_is_not_there(device):
    if device.available:
        assert str(resolve(device.name)) in {device.name, f"{device.name}:0"}
        assert device.reason is None
        assert memory_used(resolve(device.name)) >= 0
    else:
        assert device.reason.endswith(".")
        with pytest.raises(ValueError, match=f"{device.name} is not available: .* Use cpu"):
            resolve(device.name)


@pytest.mark.cuda
def test_memory_in_use_on_a_gpu_is_that_of_its_tensors():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA GPU")
    before = memory_used("cuda:0")
    tensor = torch.zeros(1024, 1024, device="cuda:0")
    assert memory_used("cuda:0") - before >= tensor.nbytes


@pytest.mark.parametrize(
    ("took", "best"),
    [
        ({1: 1.0, 2: 0.95}, 1),
        ({1: 1.0, 2: 0.6}, 2),
        ({1: 1.0, 2: 3.0}, 1),
        ({1: 1, 2: 0.6, 4: 0.58}, 2),
    ],
)
def test_more_threads_must_gain_a_tenth(took, best):
    assert fastest_threads(took) == best


CHOSEN = dict(zip(IDS, EXPERIMENTS, strict=True)) | {
    "rotary": experiment(model={"position": "rotary"}),
    "alibi": experiment(model={"position": "alibi"}),
    "t5-bias": experiment(model={"position": "t5-bias"}),
    "averaged muon": experiment(training={"optimizer": "muon", "ema_decay": 0.9}),
    "grammar": experiment("decoder-only", "grammar"),
    "text": language(),
}

LAUNCHES = {
    "encoder-decoder": 263,
    "encoder-only": 151,
    "decoder-only": 175,
    "label": 164,  # its last block computes the CLS token alone
    "blanks": 180,
    "additive": 781,
    "luong": 398,
    "vit": 206,
    "captioner": 395,
    "rotary": 217,
    "alibi": 205,
    "t5-bias": 213,
    "averaged muon": 245,
    "grammar": 150,
    "attention only": 122,
    "experts": 359,  # without data all experts run; with data each of their blocks waits once more
    "text": 154,
}


@pytest.mark.parametrize("name", CHOSEN)
def test_a_step_waits_once_for_its_device_and_launches_no_more_than_it_did(name, monkeypatch):
    asked = step_of(CHOSEN[name], monkeypatch)
    assert asked.waits.total() == 1, asked.waits
    assert "setup" in next(iter(asked.waits))
    assert not asked.sent, asked.sent  # the batch came with those of the steps before
    assert asked.launches.total() <= LAUNCHES[name], asked.launches


@pytest.mark.parametrize("chosen", [*CHOSEN.values(), HALVED], ids=[*CHOSEN, "halved"])
def test_batches_drawn_ahead_are_those_drawn_one_by_one(chosen, monkeypatch):
    trainer, other = build(chosen), build(chosen)
    there = torch.device("cpu")
    monkeypatch.setattr(
        trainers,
        "send_batches",
        lambda draws, _device: [
            replace(draw, tensors=sent)
            for draw, sent in zip(
                draws, to_device_together([draw.tensors for draw in draws], there), strict=True
            )
        ],
    )
    monkeypatch.setattr(trainers, "_PREFETCHED_STEPS", 3)
    trainer.device = DEVICE
    for step in (1, 2, 3, 4, 6):  # the fifth was drawn with the fourth
        ahead, own = trainer.batch(step), other.batch(step)
        assert ahead.sizes == own.sizes
        torch.testing.assert_close(ahead.tensors, own.tensors, rtol=0, atol=0)
        assert torch.equal(ahead.indices, own.rows)


@pytest.mark.parametrize(
    ("name", "most"), [("encoder-decoder", 2), ("grammar", 1), ("text", 1), ("vit", 2)]
)
def test_data_without_room_on_the_device_stays_and_each_batch_is_sent(name, most, monkeypatch):
    monkeypatch.setattr(setup, "memory_free", lambda _device: 1000)
    asked = step_of(CHOSEN[name], monkeypatch)
    assert asked.waits.total() == 1, asked.waits
    assert asked.sent.total() == most, asked.sent
    remark = asked.trainer.remark
    assert "do not fit into the 1000 B free on meta" in remark.replace(",", "")
    assert next(train(asked.trainer)).remark == remark


def test_data_with_room_on_the_device_lies_there_and_nothing_is_remarked(monkeypatch):
    monkeypatch.setattr(setup, "memory_free", lambda _device: 2**30)
    asked = step_of(CHOSEN["encoder-decoder"], monkeypatch)
    assert asked.trainer.data.train.src.is_meta
    assert asked.trainer.remark is None


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_the_mask_of_alibi_is_finite_in_16_bits_too(kind, monkeypatch):
    """A row in which nothing is allowed would be NaN in kernels that take -inf at its word."""
    given = []

    def noted(q, k, v, attn_mask, **_options):
        given.append(attn_mask.to(kind))
        return q

    monkeypatch.setattr("torch.nn.functional.scaled_dot_product_attention", noted)
    q = torch.zeros(2, 3, 5, 7)
    mask = torch.zeros(5, 5, dtype=torch.bool)
    with torch.autocast("cpu", dtype=kind):
        fused_attention(q, q, q, mask, alibi_bias(3, 5))
    fused_attention(q.to(kind), q.to(kind), q.to(kind), mask, alibi_bias(3, 5))
    for bias in given:
        assert bias.isfinite().all()
        assert (bias < -1e4).all()


def lost(trainer, n_steps: int) -> list[Step]:
    """Return steps of fp16 of which those from the third to before ``n_steps`` more overflow."""
    sound, events = trainer.model.output.weight.detach().clone(), []
    for event in train(trainer):
        if isinstance(event, Step):
            events.append(event)
            is_lost = 2 <= event.step < 2 + n_steps
            with torch.no_grad():
                trainer.model.output.weight.copy_(sound * (math.inf if is_lost else 1))
    return events


def test_a_few_steps_that_overflow_fp16_are_not_the_end_and_all_are():
    trainer = build(experiment(training={"precision": "fp16"}))
    losses = [event.loss for event in lost(trainer, 3)]
    assert [math.isfinite(loss) for loss in losses] == [True, True, False, False, False, True]
    assert all(bool(weight.isfinite().all()) for weight in trainer.parameters)
    assert math.isfinite(trainer.descent.smoothed)
    trainer = build(experiment(training={"precision": "fp16", "steps": 40}))
    with pytest.raises(TrainingDiverged, match="at step 19:"):
        lost(trainer, 40)
    with pytest.raises(TrainingDiverged, match="at step 3:"):
        lost(build(experiment(training={"steps": 40})), 1)


def test_products_of_fp32_take_tf32_and_no_number_of_the_cpu_changes():
    set_up_torch(1)
    assert torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    curves = []
    for _ in range(2):
        steps = [e for e in train(build(experiment())) if isinstance(e, Step)]
        curves.append([event.loss for event in islice(steps, 6)])
        set_up_torch(1)
    assert curves[0] == curves[1]


@pytest.fixture
def helper():
    helper = Helper()
    yield helper
    helper.close()
    assert not helper.is_running


def test_another_process_gives_the_answers_of_this_one_and_refuses_in_its_words(helper):
    assert [one.name for one in helper.ask("devices")] == [one.name for one in machine.devices()]
    found = helper.ask("estimate", to_json(experiment()), "cpu")
    here = gpu_helper.estimate(experiment(), "cpu")
    assert (found.n_parameters, found.step_bytes) == (here.n_parameters, here.step_bytes)
    assert found.seconds_per_step > 0
    with pytest.raises(StudentError, match="Unknown device 'abacus'") as refused:
        helper.ask("estimate", to_json(experiment()), "abacus")
    assert refused.value.sentence.values == {"name": "abacus"}


def test_a_process_that_died_is_started_again(helper):
    helper.ask("devices")
    os.kill(helper._process.pid, signal.SIGKILL)
    helper._process.wait()
    assert helper.ask("devices")
    with pytest.raises(RuntimeError, match="IndexError"):
        helper.ask("estimate")


def test_it_ends_when_nothing_more_is_asked():
    helper = Helper(idle_seconds=0.0)
    assert helper.ask("devices")
    wait_until(lambda: helper._process is None, "the helper is gone")


def test_a_server_with_a_gpu_asks_the_helper_and_one_without_asks_nobody(monkeypatch):
    asked = []
    monkeypatch.setattr(gpu_helper.HELPER, "ask", lambda *question: asked.append(question[0]) or [])
    gpu_helper.devices()
    assert asked == []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert gpu_helper.devices() == []
    assert gpu_helper.estimate(experiment(), "cuda:0") == []
    assert limits.memory_of("cuda:0") is None
    assert asked == ["devices", "estimate", "devices"]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(machine, "devices", list)
    assert gpu_helper.devices() == []
    assert len(asked) == 3, "a process that has its GPU looks itself"


@pytest.mark.usefixtures("forked_all")
def test_the_helper_ends_with_whoever_asked():
    code = (
        "from tfm_core.training.gpu_helper import HELPER; HELPER.ask('devices');"
        "print(HELPER._process.pid, flush=True); import os; os._exit(0)"
    )
    pid = int(subprocess.check_output([sys.executable, "-c", code]))
    wait_until(lambda: _is_gone(pid), "the helper is gone")


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    import psutil

    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


WITH_BLOCKS = {
    name: chosen
    for name, chosen in zip(IDS, EXPERIMENTS, strict=True)
    if chosen.model.family != "recurrent"
}

WITH_BLOCKS |= {
    "vit-cls": experiment("vit", "mnist-5000", model={"dropout": 0.1, "pooling": "cls"}),
    "rotary": experiment("encoder-decoder", "copy", model={"position": "rotary", "dropout": 0.1}),
    "bf16": experiment("decoder-only", "addition", training={"precision": "bf16"}),
}


def forgetting(chosen):
    return chosen.replace(training=chosen.training.replace(checkpointing=True).model_dump())


@pytest.mark.parametrize("chosen", WITH_BLOCKS.values(), ids=WITH_BLOCKS)
def test_the_curve_and_the_weights_are_the_same_bit_for_bit(chosen):
    plain, other = build(chosen), build(forgetting(chosen))
    assert list(records(other)) == list(records(plain))
    for name, value in plain.model.state_dict().items():
        assert torch.equal(other.model.state_dict()[name], value), name


def test_going_on_from_a_checkpoint_gives_the_same_curve(tmp_path):
    goes_on_with_the_same_curve(forgetting(EXPERIMENTS[0]), tmp_path)


def kept_and_passes(chosen):
    """Numbers that a step keeps for its backward pass, and forward passes of blocks."""
    trainer = build(chosen)
    passes, kept = [], []
    for module in trainer.model.modules():
        if isinstance(module, Block):
            module.register_forward_pre_hook(lambda *_: passes.append(1))
    generator = torch.Generator().manual_seed(0)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.numel()) or tensor, lambda tensor: tensor
    ):
        metrics = trainer.objective.loss_and_metrics(
            trainer.model.train(), trainer.batch_indices(1), generator
        )
        n_kept = sum(kept)
        metrics.loss.backward()
    return n_kept, len(passes)


def test_less_is_kept_where_there_are_blocks():
    chosen = experiment("encoder-decoder", "copy", model={"dropout": 0.2})
    kept, passes = kept_and_passes(chosen)
    kept_then, passes_then = kept_and_passes(forgetting(chosen))
    assert kept_then < kept / 2
    assert passes_then == 2 * passes
    with pytest.raises(ConfigError, match="has no Transformer blocks") as why:
        forgetting(experiment("recurrent", "copy"))
    assert why.value.problems[0].field == "training.checkpointing"


@pytest.mark.parametrize("name", ["translate", "addition", "sort-at-once", "vit-digits"])
def test_parameters_are_those_of_the_model(name):
    chosen = PRESETS[name].experiment
    assert estimate(chosen).n_parameters == build(chosen).n_parameters


def test_huge_models_and_checkpointing_are_forecast():
    huge = experiment(
        "vit", "mnist-5000", model={"d_model": 4096, "n_heads": 32, "d_ff": 16384, "n_layers": 48}
    )
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


@pytest.mark.parametrize(
    ("precision", "kind"),
    [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)],
)
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
