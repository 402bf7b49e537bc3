"""From pixels to tokens: patch embedding (Dosovitskiy et al. 2021, Eq. 1) and the stems."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.choices.variants.stems import WIDTH, halving_widths
from tfm_core.layers import recorder


def patchify(images: Tensor, patch_size: int) -> Tensor:
    """Cut (B, C, H, W) into (B, n_patches, C * patch_size^2), row by row from the top left.

    Each patch is flattened channel first, then row, then column, like a convolution's kernel.
    Raises ValueError when patch_size does not divide the picture.
    """
    batch, channels, height, width = images.shape
    if height % patch_size or width % patch_size:
        raise ValueError(f"patch_size {patch_size} does not divide {height}x{width} pictures")
    rows, columns = height // patch_size, width // patch_size
    grid = images.reshape(batch, channels, rows, patch_size, columns, patch_size)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, -1)


class PatchEmbedding(nn.Module):
    """Cut and project: a convolution whose stride is its kernel, written as one matrix product."""

    def __init__(self, channels: int, patch_size: int, d_model: int) -> None:
        """Project patches of ``patch_size`` squared pixels to d_model."""
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Linear(channels * patch_size**2, d_model)

    def forward(self, images: Tensor) -> Tensor:
        """Map (B, C, H, W) to (B, n_patches, d_model)."""
        patches = patchify(images, self.patch_size)
        out: Tensor = self.projection(patches)
        recorder.record(self, patches=patches, projected=out)
        return out


class ConvStem(nn.Module):
    """A 3x3 convolution before the patches, so that a stroke across a border is seen whole.

    After "Early Convolutions Help Transformers See Better" (Xiao et al. 2021), at the size of a
    digit: one convolution at full resolution, then the usual cut and projection.
    """

    def __init__(self, channels: int, patch_size: int, d_model: int, width: int = WIDTH) -> None:
        """Widen to ``width`` channels before cutting."""
        super().__init__()
        self.convolution = nn.Conv2d(channels, width, 3, padding=1)
        self.patches = PatchEmbedding(width, patch_size, d_model)

    def forward(self, images: Tensor) -> Tensor:
        """Map (B, C, H, W) to (B, n_patches, d_model)."""
        convolved = F.gelu(self.convolution(images))
        recorder.record(self, convolved=convolved)
        out: Tensor = self.patches(convolved)
        return out


class ConvStack(nn.Module):
    """3x3 convolutions of stride 2, each with twice the channels of the one before.

    "Early Convolutions Help Transformers See Better" (Xiao et al. 2021), section 4: the picture is
    halved until each patch is one place, the last convolution has d_model channels, and a linear
    layer follows. There is no batch norm, so an example does not depend on its batch.
    """

    def __init__(self, channels: int, patch_size: int, d_model: int) -> None:
        """Halve a picture until patches of ``patch_size`` pixels are one place. Raises ValueError.

        Patches of one pixel leave nothing to halve.
        """
        super().__init__()
        widths = halving_widths(patch_size, d_model)
        if not widths:
            raise ValueError("a stack of convolutions halves pictures: patch_size 1 leaves none")
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, width, 3, stride=2, padding=1)
            for before, width in zip([channels, *widths], widths, strict=False)
        )
        self.projection = nn.Linear(d_model, d_model)

    def forward(self, images: Tensor) -> Tensor:
        """Map (B, C, H, W) to (B, n_patches, d_model)."""
        # 0.85 of the time on a CPU, and each patch is contiguous
        seen = images.contiguous(memory_format=torch.channels_last)
        for convolution in self.convolutions:
            seen = F.gelu(convolution(seen))
        patches = seen.flatten(2).mT
        out: Tensor = self.projection(patches)
        recorder.record(self, convolved=seen, patches=patches, projected=out)
        return out
