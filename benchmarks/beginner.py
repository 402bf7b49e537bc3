"""A training step of the Vision Transformer against the loops of a first attempt at it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.beginner_vit import LoopedViT, copy_weights
from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Table
from benchmarks.timing import measure, milliseconds, ratio, training_step
from tfm_core.choices.config import ViTConfig
from tfm_core.models.build import ImageShape, build_vit
from tfm_core.models.pictures import VisionTransformer

BATCH = 128
GOAL = "beginner's ViT"


def models() -> tuple[LoopedViT, VisionTransformer]:
    """Return the looped model and ours, with equal weights: 49 patches, d_model 8, 2 heads."""
    torch.manual_seed(0)
    looped = LoopedViT()
    config = ViTConfig(
        d_model=8, n_heads=2, n_layers=2, d_ff=24, patch_size=4, pooling="cls", position="learned"
    )
    ours = build_vit(config, ImageShape(image_size=28, channels=1, n_classes=10))
    copy_weights(looped, ours)
    return looped, ours


def batch(size: int = BATCH) -> tuple[Tensor, Tensor]:
    """Return pictures (B, 1, 28, 28) of noise and labels (B,)."""
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(size, 1, 28, 28, generator=generator)
    return images, torch.randint(10, (size,), generator=generator)


def tables(*, quick: bool) -> Iterator[Table]:
    """Check that outputs are equal, then time training steps in turn."""
    images, labels = batch()
    looped, ours = models()
    torch.testing.assert_close(ours(images), looped(images), rtol=1e-4, atol=1e-5)
    taken = measure(
        {
            "looped": training_step(looped, (images,), labels),
            "ours": training_step(ours, (images,), labels),
        },
        rounds=2 if quick else 10,
        warmup=1,
        repeats={"looped": 1, "ours": 10},
    )
    gain = ratio(taken["looped"], taken["ours"])
    yield Table(
        "Training step, ViT with 49 patches of 4x4, d_model 8, 2 heads, 2 layers, batch 128",
        ["", "CPU-ms a step", "ratio", "target"],
        [
            ["loops over pictures, patches, heads", milliseconds(taken["looped"]).show(), "", ""],
            [
                "ours",
                milliseconds(taken["ours"]).show(),
                f"{gain.show('x', 1)} faster",
                goal_cell(GOAL, gain.median),
            ],
        ],
        ["Equal weights, outputs equal to 1e-4.", f"{len(taken['ours'])} rounds."],
        {GOAL: Figure(gain.median)},
    )
