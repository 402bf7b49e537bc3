"""PyTorch's LSTM, in fp32 where a CPU has no kernel for the format that autocast asks for.

Without AVX-512, PyTorch asks oneDNN for one all the same, and gets an error.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn


class LSTM(nn.LSTM):
    """Runs in fp32 under an autocast that the CPU has no kernel for."""

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> Any:  # type: ignore[override]
        """Return the states and the last state of each layer, as ``nn.LSTM`` does."""
        is_autocast = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
        if not is_autocast or has_kernel(torch.get_autocast_dtype("cpu")):
            return super().forward(x, state)
        with torch.autocast("cpu", enabled=False):
            return super().forward(
                x.float(), None if state is None else (state[0].float(), state[1].float())
            )


@cache
def has_kernel(dtype: torch.dtype) -> bool:
    """Return whether this CPU can run an LSTM under autocast to ``dtype``: a tiny one is tried."""
    state = (torch.zeros(1, 1, 1), torch.zeros(1, 1, 1))
    weights = [torch.zeros(4, 1), torch.zeros(4, 1), torch.zeros(4), torch.zeros(4)]
    try:
        with torch.autocast("cpu", dtype=dtype):
            torch.lstm(torch.zeros(1, 1, 1), state, weights, True, 1, 0.0, True, False, False)
    except RuntimeError:
        return False
    return True
