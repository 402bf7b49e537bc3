"""A Vision Transformer as a first attempt writes it: correct, and a loop for everything.

Pictures are cut patch by patch; attention goes sequence by sequence and head by head, each head
with small linear layers of its own on its slice of the embedding, a common simplification.
Dosovitskiy et al. 2021, section 3.1, at 28x28.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tfm_core.models.pictures import VisionTransformer


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


class LoopedAttention(nn.Module):
    """Self-attention, one sequence and one head at a time.

    Each head has three (d_head, d_head) maps and sees only its own slice of the embedding.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        """Give each head d_model / n_heads dimensions."""
        super().__init__()
        d_head = d_model // n_heads
        self.n_heads, self.d_head = n_heads, d_head
        self.queries = nn.ModuleList(nn.Linear(d_head, d_head) for _ in range(n_heads))
        self.keys = nn.ModuleList(nn.Linear(d_head, d_head) for _ in range(n_heads))
        self.values = nn.ModuleList(nn.Linear(d_head, d_head) for _ in range(n_heads))
        self.out = nn.Linear(d_model, d_model)

    def forward(self, sequences: Tensor) -> Tensor:
        """Map (B, T, d_model) to the same shape."""
        results = []
        for sequence in sequences:
            heads = []
            for head in range(self.n_heads):
                part = sequence[:, head * self.d_head : (head + 1) * self.d_head]
                q, k, v = self.queries[head](part), self.keys[head](part), self.values[head](part)
                weights = torch.softmax(q @ k.T / math.sqrt(self.d_head), dim=-1)
                heads.append(weights @ v)
            results.append(torch.hstack(heads))
        return self.out(torch.cat([result.unsqueeze(0) for result in results]))


class LoopedBlock(nn.Module):
    """A pre-norm encoder block with a GELU feed-forward layer."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int) -> None:
        """Widen to d_ff and back."""
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = LoopedAttention(d_model, n_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, d_model) to the same shape."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class LoopedViT(nn.Module):
    """CLS token, learned positions, blocks, a norm, and a linear head on the CLS token."""

    def __init__(
        self,
        *,
        patch_size: int = 4,
        n_patches: int = 49,
        d_model: int = 8,
        n_heads: int = 2,
        n_layers: int = 2,
        d_ff: int = 24,
        n_classes: int = 10,
    ) -> None:
        """Start from the sizes of the exercise: 7x7 patches of 4x4 grey pixels."""
        super().__init__()
        self.patch_size = patch_size
        self.embedding = nn.Linear(patch_size**2, d_model)
        self.cls = nn.Parameter(torch.randn(1, d_model))
        self.positions = nn.Parameter(0.02 * torch.randn(n_patches + 1, d_model))
        self.blocks = nn.ModuleList(LoopedBlock(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Map (B, 1, 28, 28) to logits (B, classes)."""
        tokens = self.embedding(cut_into_patches(images, self.patch_size))
        with_cls = [torch.vstack([self.cls, sequence]) for sequence in tokens]
        x = torch.stack([sequence + self.positions for sequence in with_cls])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def copy_weights(looped: LoopedViT, ours: VisionTransformer) -> None:
    """Give ``ours``, of equal sizes, the weights of ``looped``.

    Maps on slices are the blocks on the diagonal of a map of the whole, zero elsewhere.
    """
    weights = {
        "stem.projection": looped.embedding,
        "encoder.final_norm": looped.norm,
        "head": looped.head,
    }
    state = {"cls": looped.cls[None], "positions.table": looped.positions}
    for number, block in enumerate(looped.blocks):
        path = f"encoder.layers.{number}"
        attention = block.attention
        maps = (attention.queries, attention.keys, attention.values)
        state |= {
            f"{path}.self_attention.in_projection.weight": torch.cat(
                [torch.block_diag(*(layer.weight for layer in layers)) for layers in maps]
            ),
            f"{path}.self_attention.in_projection.bias": torch.cat(
                [layer.bias for layers in maps for layer in layers]
            ),
        }
        weights |= {
            f"{path}.self_attention.out_projection": attention.out,
            f"{path}.self_attention_norm": block.norm1,
            f"{path}.feed_forward_norm": block.norm2,
            f"{path}.feed_forward.up": block.mlp[0],
            f"{path}.feed_forward.down": block.mlp[2],
        }
    for path, layer in weights.items():
        state |= {f"{path}.weight": layer.weight, f"{path}.bias": layer.bias}
    ours.load_state_dict({name: value.detach() for name, value in state.items()})
