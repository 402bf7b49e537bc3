"""The position-wise feed-forward layer: Vaswani et al. 2017, section 3.3, and its gated form.

Every token alone is widened, bent and narrowed again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.layers import recorder

# swiglu bends a separate gate, so its activation is the SiLU of that gate
ACTIVATION_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "swiglu": F.silu,
}


class FeedForward(nn.Module):
    """``down(activation(up(x)))``, or ``down(silu(gate(x)) * up(x))`` for SwiGLU (Shazeer 2020)."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        """Name one of ACTIVATION_FUNCTIONS."""
        super().__init__()
        self.activation = ACTIVATION_FUNCTIONS[activation]
        self.up = nn.Linear(d_model, d_ff, bias=bias)
        self.gate = nn.Linear(d_model, d_ff, bias=bias) if activation == "swiglu" else None
        self.down = nn.Linear(d_ff, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x: (B, T, d_model) to the same shape."""
        if self.gate is None:
            hidden = self.activation(self.up(x))
        else:
            hidden = self.activation(self.gate(x)) * self.up(x)
        recorder.record(self, hidden=hidden)
        out: Tensor = self.down(self.dropout(hidden))
        recorder.record(self, input=x, output=out)
        return out
