"""Every window of a running text, cut when it is asked for (as nanoGPT does, Karpathy 2022)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tfm_core.data.moving import sent
from tfm_core.data.vocabulary import BOS


@dataclass(frozen=True)
class Windows:
    """Windows of ``length`` tokens that begin at each token of ``ids`` (N,) that has so many left.

    Overlapping windows share their tokens, so that a long text costs no more memory than itself.
    """

    ids: Tensor
    length: int

    def __len__(self) -> int:
        """Number of windows."""
        return len(self.ids) - self.length + 1

    def rows(self, starts: Tensor) -> Tensor:
        """Return (B, 1 + length): <bos> and the tokens from each start on. starts: (B,) int64."""
        device = self.ids.device
        indices = sent(starts, device)[:, None] + torch.arange(self.length, device=device)
        tokens = self.ids[indices]
        return torch.cat([tokens.new_full((len(tokens), 1), BOS), tokens], 1)

    def to(self, device: torch.device | str) -> Windows:
        """Return the windows on a device."""
        return replace(self, ids=self.ids.to(device))
