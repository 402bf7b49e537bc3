"""Memory against what autograd keeps, and against the peak of PyTorch's own allocator."""

import contextlib
import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, example, given
from torch.profiler import ProfilerActivity, profile

from tests.anatomy.configurations import models
from tfm_core.choices.config import MODEL_CONFIGS, TrainingConfig, to_json
from tfm_core.choices.config.shape import CaptionShape, ImageShape, TextShape
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.recurrent import CELLS
from tfm_core.choices.variants.training import OPTIMISERS, PRECISIONS
from tfm_core.facts.architectures import of_experiment
from tfm_core.facts.memory import PROCESS_BYTES, memory, of_run, sizes
from tfm_core.layers.blocks import enable_checkpointing
from tfm_core.layers.fast import has_kernel
from tfm_core.models.build import build_model
from tfm_core.training.optimisation import make_optimizer
from tfm_core.training.setup import new_model

BYTES = 4  # of a float32

BATCH, SRC, TGT = 4, 37, 31
TEXT = TextShape(43, 41)
LANGUAGE = TextShape(41, 41, one_vocabulary=True, has_source=False)
LABEL = {name: TextShape(43, 41, head=name, n_labels=2) for name in ("mean", "cls")}
IMAGE, CAPTION = ImageShape(12, 3, 5), CaptionShape(12, 3, 41, 13)
REGIONS = CaptionShape(3, 40, 41, 13, has_regions=True)
SIZES = {"d_model": 48, "n_heads": 3, "d_ff": 80}
SHAPES = [
    ("encoder-decoder", TEXT, {"n_encoder_layers": 2, "n_decoder_layers": 3}),
    ("encoder-only", TEXT, {"n_layers": 2}),
    ("encoder-only", LABEL["mean"], {"n_layers": 2}),
    ("encoder-only", LABEL["cls"], {"n_layers": 2, "pooling": "cls"}),
    ("decoder-only", TEXT, {"n_layers": 2}),
    ("decoder-only", LANGUAGE, {"n_layers": 2}),
    ("vit", IMAGE, {"patch_size": 2}),
    ("vit", IMAGE, {"patch_size": 2, "pooling": "cls"}),
    ("vit", IMAGE, {"patch_size": 2, "stem": "conv"}),
    ("vit", IMAGE, {"patch_size": 2, "stem": "conv-stack"}),
    ("captioner", CAPTION, {"patch_size": 2, "n_encoder_layers": 3, "n_decoder_layers": 2}),
    ("captioner", REGIONS, {"patch_size": 1, "stem": "patches", "n_decoder_layers": 2}),
]
SETTINGS = [
    {},
    {"norm_first": False},
    {"norm": "rmsnorm"},
    {"norm": "none"},
    {"mistakes": "no-residuals"},
    {"mistakes": "residual-from-normed"},
    {"mistakes": "no-scale"},
    {"activation": "relu"},
    {"activation": "swiglu"},
    {"activation": "geglu"},
    {"dropout": 0.1},
    {"position": "rotary"},
    {"position": "alibi"},
    {"position": "t5-bias"},
    {"window": 3},
    {"window": 3, "full_every": 2},
    {"n_kv_heads": 1, "dropout": 0.1},
    {"sink": "learned", "dropout": 0.1},
    {"sink": "zero", "n_kv_heads": 1},
    {"head_dim": 20, "n_kv_heads": 1},
    {"head_dim": 6, "sink": "zero", "position": "rotary"},
    {"head_dim": 20, "qk_norm": True, "qkv_bias": True},
    {"qk_norm": True, "n_kv_heads": 1, "position": "rotary"},
]
RECURRENT = [
    {"attention": "additive"},
    {"attention": "concat"},
    {"attention": "general", "n_layers": 2, "dropout": 0.1},
    {"n_layers": 3},
    {"is_bidirectional": False},
]


def inputs_of(shape, batch, src_len, tgt_len):
    """Return random inputs of these lengths; the longest captions that there can be."""
    if isinstance(shape, TextShape):
        sizes = (src_len * shape.has_source, tgt_len)
        return tuple(torch.ones(batch, n, dtype=torch.long) for n in sizes)
    images = torch.randn(batch, shape.channels, shape.image_size, shape.image_size)
    if isinstance(shape, ImageShape):
        return (images,)
    return images, torch.ones(batch, shape.tgt_len, dtype=torch.long)


def loss_of(model, inputs, precision):
    """Return a loss as training has it, at a precision."""
    autocast = PRECISIONS[precision].autocast
    context = contextlib.nullcontext()
    if autocast:
        context = torch.autocast("cpu", dtype=getattr(torch, autocast))
    with context:
        logits = model(*inputs).flatten(0, -2)
        return F.cross_entropy(logits.float(), torch.zeros(len(logits), dtype=torch.long)), logits


def kept_by_autograd(model, inputs, precision="fp32"):
    """Return the bytes that the backward pass will need, without the parameters; of the logits."""
    held = {}
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            held[storage.data_ptr()] = storage  # alive, so that no other comes to lie there
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss, logits = loss_of(model, inputs, precision)
    assert loss.requires_grad
    return sum(storage.nbytes() for storage in held.values()), BYTES * logits.numel()


def model_of(family, shape, settings):
    sizes = {"d_model": 48} if family == "recurrent" else SIZES
    config = MODEL_CONFIGS[family].parse({**sizes, **settings})
    torch.manual_seed(0)
    return config, build_model(config, shape).train()


def activations(config, shape, precision):
    tgt_len = shape.tgt_len if isinstance(shape, CaptionShape) else TGT
    training = TrainingConfig(precision=precision)
    found = memory(config, shape, 1, training, batch=BATCH, src_len=SRC, tgt_len=tgt_len)
    return found.activations


@pytest.mark.core(6)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(("family", "shape", "sizes"), SHAPES, ids=lambda value: str(value)[:60])
def test_activations_are_what_autograd_keeps(family, shape, sizes, precision):
    """Within 1%, 4% at smaller precisions; the logits live besides, until the loss is there."""
    tolerance = 0.01 if precision == "fp32" else 0.04
    for settings in SETTINGS:
        if not isinstance(shape, TextShape) and not settings.keys().isdisjoint(
            {"position", "window"}
        ):
            continue  # of texts alone
        config, model = model_of(family, shape, {**sizes, **settings})
        held, logits = kept_by_autograd(model, inputs_of(shape, BATCH, SRC, TGT), precision)
        if isinstance(shape, TextShape) and shape.is_label:
            logits = BYTES * BATCH * shape.n_labels  # the other words are never computed
        found = activations(config, shape, precision) - logits
        assert found == pytest.approx(held, rel=tolerance), settings


def test_norms_behind_positions_keep_what_they_read():
    shape = replace(TEXT, embedding_norm=True)
    for settings in ({"norm_first": False}, {"norm": "rmsnorm"}, {"dropout": 0.1}):
        config, model = model_of("encoder-decoder", shape, {"position": "learned", **settings})
        held, logits = kept_by_autograd(model, inputs_of(shape, BATCH, SRC, TGT))
        assert activations(config, shape, "fp32") - logits == pytest.approx(held, rel=0.01)


@given(models(families=("encoder-decoder", "encoder-only", "decoder-only", "vit", "captioner")))
@example(
    (
        MODEL_CONFIGS["vit"].parse(
            {"mistakes": "no-output-projection", "position": "alibi", "patch_size": 2}
        ),
        ImageShape(8, 1, 5),
    )
)
@example(
    (
        MODEL_CONFIGS["vit"].parse({"sink": "zero", "position": "alibi", "patch_size": 2}),
        ImageShape(8, 1, 5),
    )
)
def test_activations_of_random_transformers_are_what_autograd_keeps(chosen):
    """Within 3%; the heads' results are counted twice without an output matrix where
    the sink is learned, or there are no residuals.
    """
    config, shape = chosen
    if config.projections != "full":
        assume(config.residual == "normal")
        config = config.replace(sink="none")
    config = config.replace(d_model=48, n_heads=3, d_ff=80)
    if isinstance(shape, TextShape):
        config = config.replace(max_len=SRC + TGT)
        assume(shape.head in ("tokens", "mean", "cls") and not shape.n_segments)
    model = build_model(config, shape).train()
    held, logits = kept_by_autograd(model, inputs_of(shape, BATCH, SRC, TGT))
    if isinstance(shape, TextShape) and shape.is_label:
        logits = BYTES * BATCH * shape.n_labels
    assert activations(config, shape, "fp32") - logits == pytest.approx(held, rel=0.03)


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 0.1), ("bf16", 0.3)])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("settings", RECURRENT, ids=str)
def test_activations_of_recurrent_models_are_near_what_autograd_keeps(
    settings, cell, precision, tolerance
):
    config, model = model_of("recurrent", TEXT, {"cell": cell, **settings})
    held, logits = kept_by_autograd(model, inputs_of(TEXT, BATCH, SRC, TGT), precision)
    found = activations(config, TEXT, precision) - logits
    if config.cell == "lstm" and precision == "bf16" and not has_kernel(torch.bfloat16):
        assert found < held < 1.1 * (activations(config, TEXT, "fp32") - logits)
        return  # this CPU reads in fp32
    assert found == pytest.approx(held, rel=tolerance)


def peak_of(step, tmp_path):
    """Return the most bytes that the CPU's allocator held at once, above those at the start."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        step()
    watched.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    events = [event for event in trace["traceEvents"] if event["name"] == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event["ts"]):
        held += event["args"]["Bytes"]
        peak = max(peak, held)
    return peak


def measured_and_found(experiment, model, tmp_path):
    """Return the peak of a step in bytes, with the weights, and the memory as it is worked out."""
    known, training = of_experiment(experiment, ""), experiment.training
    optimizer = make_optimizer(model, training)
    inputs = inputs_of(known.shape, training.batch_size, known.src_len, known.tgt_len)

    def steps():
        for _ in range(2):  # in the second the gradients of the first are still there
            loss, logits = loss_of(model, inputs, training.precision)
            del logits
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    found = of_run(experiment, n_parameters)
    assert found.weights == BYTES * n_parameters
    return peak_of(steps, tmp_path) + found.weights, found


@pytest.mark.core(8)
@pytest.mark.parametrize("name", PRESETS)
def test_the_memory_of_a_step_is_the_peak_of_the_allocator(name, tmp_path):
    """Within 10%, on random data of the longest sequences that the preset's task has."""
    experiment = PRESETS[name].experiment
    measured, found = measured_and_found(experiment, new_model(experiment).train(), tmp_path)
    assert found.total == pytest.approx(measured, rel=0.1)


@pytest.mark.core(2)
@pytest.mark.parametrize(
    ("name", "dropout", "precision"),
    [
        ("vit-digits", 0.0, "fp32"),
        ("vit-digits", 0.1, "bf16"),
        ("translate", 0.1, "fp32"),
        ("translate", 0.0, "bf16"),
        ("gpt-text", 0.1, "bf16"),
        ("sentiment", 0.0, "fp32"),
    ],
)
def test_with_checkpointing_memory_is_the_peak_of_the_allocator_too(
    name, dropout, precision, tmp_path
):
    """Within 15%: beside the blocks' inputs one block's inside, and what passes through it."""
    experiment = PRESETS[name].experiment
    training = experiment.training.replace(checkpointing=True, precision=precision)
    experiment = experiment.replace(
        model=experiment.model.replace(dropout=dropout).model_dump(), training=training.model_dump()
    )
    model = new_model(experiment).train()
    enable_checkpointing(model)
    measured, found = measured_and_found(experiment, model, tmp_path)
    assert found.total == pytest.approx(measured, rel=0.15)
    plain = training.replace(checkpointing=False).model_dump()
    assert found.total < of_run(experiment.replace(training=plain), found.weights // BYTES).total


@pytest.mark.parametrize(("name", "batch_size"), [("translate", 64), ("translate", 1), ("copy", 1)])
def test_what_muon_works_on_counts_where_a_batch_is_small(name, batch_size, tmp_path):
    """Within 10% on a model that is wide for its batch."""
    experiment = PRESETS[name].experiment
    training = experiment.training.replace(optimizer="muon", batch_size=batch_size)
    experiment = experiment.replace(
        model=experiment.model.replace(d_model=128, d_ff=512).model_dump(),
        training=training.model_dump(),
    )
    measured, found = measured_and_found(experiment, new_model(experiment).train(), tmp_path)
    assert found.total == pytest.approx(measured, rel=0.1)


@pytest.mark.parametrize("name", list(OPTIMISERS))
def test_the_numbers_of_the_optimiser_are_those_that_it_keeps(name):
    config, model = model_of("encoder-only", TEXT, {})
    optimizer = make_optimizer(model, TrainingConfig(optimizer=name))
    model(*inputs_of(TEXT, 2, 5, 5)).sum().backward()
    optimizer.step()
    kept = sum(
        value.numel() * value.element_size()
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor) and value.ndim  # not the number of the step
    )
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    found = memory(config, TEXT, n_parameters, TrainingConfig(optimizer=name), src_len=5, tgt_len=5)
    assert found.optimizer == kept


def test_watched_weights_are_kept_besides_unless_dropout_keeps_them_anyway():
    for dropout in (0.0, 0.1):
        config, _ = model_of("encoder-only", TEXT, {"dropout": dropout, "n_layers": 3})
        found = memory(config, TEXT, 1, batch=BATCH, src_len=SRC, tgt_len=SRC)
        more = 0 if dropout else BATCH * 3 * SIZES["n_heads"] * SRC * SRC * 2 * BYTES
        assert found.watched - found.activations == more


_GROWTH = """
import sys
from pathlib import Path
import torch
from tfm_core.choices.config import from_json
from tfm_core.training.loop import build, train

def peak(name):
    status = Path("/proc/self/status").read_text()
    return next(1024 * int(line.split()[1]) for line in status.splitlines() if name in line)

torch.set_num_threads(1)
trainer = build(from_json(sys.stdin.read()))
before = peak("VmRSS")
for _ in train(trainer):
    pass
print(peak("VmHWM") - before)
"""


@pytest.mark.wide
@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize(
    ("name", "model"), [("copy", {}), ("translate", {"d_model": 256, "d_ff": 1024})]
)
def test_a_process_grows_by_no_more_than_is_said(name, model):
    base = PRESETS[name].experiment
    training = {**base.training.model_dump(), "steps": 3}
    experiment = base.replace(model={**base.model.model_dump(), **model}, training=training)
    step = sizes(experiment)
    bound = step.memory_bytes - PROCESS_BYTES
    for _process in range(3):  # the gaps that malloc leaves in a heap are up to 20% of it
        out = subprocess.run(
            [sys.executable, "-c", _GROWTH],
            input=to_json(experiment),
            capture_output=True,
            text=True,
            check=True,
        )
        grown = int(out.stdout)
        if grown <= bound:
            break
    assert 0 < grown <= bound < 12 * (grown + 4 * step.n_parameters)
