"""The loops of a first attempt, one picture, patch, sequence or head at a time.

They are correct, but starting an operation takes longer than its arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import torch
from torch import Tensor

from tfm_core.config import PatchConfig
from tfm_core.data.image_data import ImageData
from tfm_core.inspect.speed.bench import Bench, compare
from tfm_core.inspect.speed.report import BenchmarkCase
from tfm_core.layers.attention import MultiHeadAttention, fused_attention
from tfm_core.layers.patches import patchify
from tfm_core.layers.recorder import recording
from tfm_core.sentences import N_


def cut_into_patches(images: Tensor, patch_size: int) -> Tensor:
    """Cut (B, C, H, W) into (B, n_patches, C * patch_size^2), one patch at a time."""
    batch, channels, height, width = images.shape
    rows, columns = height // patch_size, width // patch_size
    patches = torch.zeros(batch, rows * columns, channels * patch_size**2, device=images.device)
    for number, image in enumerate(images):
        for row in range(rows):
            for column in range(columns):
                top, left = row * patch_size, column * patch_size
                patch = image[:, top : top + patch_size, left : left + patch_size]
                patches[number, row * columns + column] = patch.flatten()
    return patches


def looped_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend sequence by sequence and head by head; q (B, H, Q, D), k and v (B, H, K, D)."""
    results = []
    for i in range(q.size(0)):
        heads = []
        for h in range(q.size(1)):
            scores = q[i, h] @ k[i, h].T / math.sqrt(q.size(-1))
            if mask is not None:
                scores = scores.masked_fill(~mask[i, h], torch.finfo(scores.dtype).min)
            heads.append(torch.softmax(scores, dim=-1) @ v[i, h])
        results.append(torch.stack(heads))
    return torch.stack(results)


def patch_cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare cutting a batch of pictures."""
    data = bench.trainer.data
    assert isinstance(data, ImageData)
    size = bench.experiment.model_as(PatchConfig).patch_size
    images = data.normalise(data.train.images[bench.indices()])
    yield BenchmarkCase(
        N_("{n_images} pictures into {size}x{size} patches", n_images=len(images), size=size),
        {
            "loops": lambda: cut_into_patches(images, size),
            "at once": lambda: patchify(images, size),
        },
        compare(
            {"patches": cut_into_patches(images, size)},
            {"patches": patchify(images, size)},
            "at once",
            relative=0.0,
        ),
        facts={"rounds": float(len(images) * patchify(images[:1], size).size(1))},
    )


class _First:
    """A recorder that keeps query, key, value and mask of the first attention without a bias."""

    def __init__(self) -> None:
        self.found: dict[str, Tensor] = {}
        self._module: object = None

    def wants(self, module: object, kinds: Collection[str]) -> bool:
        """Ask for everything."""
        return True

    def record(self, module: object, tensors: dict[str, Tensor]) -> None:
        """Keep what the first attention is computed from."""
        if not isinstance(module, MultiHeadAttention) or self._module not in (None, module):
            return
        if "weights" in tensors:
            self._module = module
            names = ("query", "key", "value", "mask")
            self.found |= {name: tensors[name].detach() for name in names if name in tensors}


def attention_cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare attention over a batch in loops with the batched one."""
    recorder = _First()
    with torch.no_grad(), recording(recorder):
        bench.loss()
    q, k, v = (recorder.found[name].contiguous() for name in ("query", "key", "value"))
    mask = recorder.found.get("mask")
    if mask is not None:
        mask = mask.expand(q.size(0), q.size(1), q.size(2), k.size(2)).contiguous()
        has_keys = mask.any(-1)[..., None]  # what a query that may see nothing gives is no matter
    else:
        has_keys = torch.ones((), dtype=torch.bool, device=q.device)
    yield BenchmarkCase(
        N_(
            "attention over {size} sequences and {size_2} heads, forward",
            size=q.size(0),
            size_2=q.size(1),
        ),
        {
            "loops": lambda: looped_attention(q, k, v, mask),
            "at once": lambda: fused_attention(q, k, v, mask),
        },
        compare(
            {"output": looped_attention(q, k, v, mask) * has_keys},
            {"output": fused_attention(q, k, v, mask) * has_keys},
            "at once",
        ),
        facts={"rounds": float(q.size(0) * q.size(1))},
    )
