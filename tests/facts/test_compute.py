"""MACs against PyTorch's own counter and against what papers give."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.anatomy.configurations import config_of, samples
from tests.models.variants import CAPTION_SHAPE, SMALL, vit_model
from tfm_core.choices.config import MODEL_CONFIGS, ViTConfig
from tfm_core.choices.config.shape import ImageShape, TextShape
from tfm_core.choices.presets import PRESETS
from tfm_core.facts.architectures import ARCHITECTURES, of_experiment
from tfm_core.facts.compute import macs, unasked
from tfm_core.models.build import build_model
from tfm_core.probe.capture import capture


def counted(model, *inputs):
    """FLOPs by PyTorch's counter, on the path that computes attention explicitly."""
    with FlopCounterMode(display=False) as counter, capture(model, only={"weights"}):
        model(*inputs)
    return counter.get_total_flops()


@pytest.mark.core(2)
@pytest.mark.parametrize("family", MODEL_CONFIGS)
def test_flops_are_those_of_the_flop_counter(family):
    src, tgt = torch.ones(2, 7, dtype=torch.long), torch.ones(2, 5, dtype=torch.long)
    shape, inputs, patches = TextShape(17, 19), (src, tgt), {}
    if family in ("vit", "captioner"):
        patches, images = {"patch_size": 2}, torch.randn(2, 3, 6, 6)
        shape, inputs = ImageShape(6, 3, 5), (images,)
        if family == "captioner":
            shape, inputs = CAPTION_SHAPE, (images, tgt)
    for settings in samples(family, rounds=2):
        config = config_of(family, {**patches, **settings})
        # on the meta device PyTorch takes its recurrent networks apart into products
        with torch.device("meta" if family == "recurrent" else "cpu"):
            model = build_model(config, shape)
        expected = counted(model, *(one.to(next(model.parameters()).device) for one in inputs))
        found = 2 * sum(macs(config, shape, batch=2, src_len=7, tgt_len=5).values())
        assert found == expected, settings


@pytest.mark.parametrize("name", ["bert-base", "gpt2-small", "transformer-base", "vit-b"])
def test_flops_at_scale_are_those_of_the_flop_counter(name):
    known = ARCHITECTURES[name]
    with torch.device("meta"):
        model = build_model(known.model, known.shape)
        if isinstance(known.shape, ImageShape):
            inputs = (torch.empty(1, 3, 224, 224),)
        else:
            n_src = 23 if known.shape.has_source else 0
            inputs = tuple(torch.ones(1, n, dtype=torch.long) for n in (n_src, 29))
        expected = counted(model, *inputs)
    assert 2 * sum(macs(known.model, known.shape, src_len=23, tgt_len=29).values()) == expected


@pytest.mark.parametrize(
    ("name", "published"),
    [("vit-ti", 1.25), ("vit-s", 4.60), ("vit-b", 17.56), ("vit-b-32", 4.41), ("vit-l", 61.55),
     ("vit-h", 167.3)],
)  # fmt: skip
def test_gmacs_of_vision_transformers(name, published):
    known = ARCHITECTURES[name]
    total = sum(macs(known.model, known.shape).values()) / 1e9
    assert round(total, 1 if published > 100 else 2) == published


@pytest.mark.parametrize(
    "settings",
    [{}, {"activation": "swiglu"}, {"n_layers": 1}, {"mistakes": "no-output-projection"}],
)
def test_what_nobody_asks_for_is_what_training_leaves_out(settings):
    """With dropout, where PyTorch's attention on a CPU is made of products that are counted."""
    settings = {**settings, "pooling": "cls", "dropout": 0.1}
    config = ViTConfig.parse({**SMALL, "patch_size": 2, **settings})
    model, images, shape = vit_model(**settings), torch.randn(3, 3, 6, 6), ImageShape(6, 3, 5)
    with FlopCounterMode(display=False) as counter:
        model(images)
    left_out = counted(model, images) - counter.get_total_flops()
    assert left_out == 2 * 3 * unasked(config, shape) > 0
    assert unasked(ViTConfig.parse({**config.model_dump(), "pooling": "mean"}), shape) == 0


def test_flops_are_those_of_the_counter_and_training_costs_three_passes():
    for name, preset in PRESETS.items():
        known = of_experiment(preset.experiment, "")
        lengths = {"src_len": known.src_len, "tgt_len": known.tgt_len}
        # without data no expert knows its tokens
        with torch.device("cpu" if getattr(known.model, "n_experts", 0) else "meta"):
            model = build_model(known.model, known.shape)
            expected = counted(model, *example_of(known))
        assert 2 * sum(macs(known.model, known.shape, **lengths).values()) == expected, name
    config = MODEL_CONFIGS["decoder-only"].parse(SMALL)
    shape = TextShape(19, 19, one_vocabulary=True, has_source=False)
    tgt = torch.ones(2, 5, dtype=torch.long)
    expected = counted(build_model(config, shape), tgt[:, :0], tgt)
    for src_len in (0, 7):
        assert (
            2 * sum(macs(config, shape, batch=2, src_len=src_len, tgt_len=5).values()) == expected
        )
    """Each product has two in the backward pass, but for those that read no learned input."""
    known = ARCHITECTURES["gpt2-small"]
    model = build_model(
        known.model.replace(n_layers=2, d_model=48, n_heads=3, d_ff=96), known.shape
    )
    words = torch.ones(1, 7, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:  # with dropout no fused kernel, so all is seen
        model(words[:, :0], words).sum().backward()
    forward = counted(model, words[:, :0], words)
    assert counter.get_total_flops() == 3 * forward


def example_of(known):
    """Return one of the longest examples of a task, on the default device."""
    shape, words = known.shape, torch.ones(1, known.tgt_len, dtype=torch.long)
    if isinstance(shape, TextShape):
        n_src = known.src_len if shape.has_source else 0
        return torch.ones(1, n_src, dtype=torch.long), words
    images = torch.ones(1, shape.channels, shape.image_size, shape.image_size)
    return (images,) if isinstance(shape, ImageShape) else (images, words)
