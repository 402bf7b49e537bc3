"""What acts on each position independently: the feed-forward layer, and norms.

The feed-forward layer is two linear layers with a non-linearity between them (Vaswani et al. 2017,
section 3.3), or its gated form.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.norms import NORM_EPS, NORMS
from tfm_core.choices.variants.record import resolve
from tfm_core.layers import recorder


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU's first approximation (Hendrycks & Gimpel 2016, section 2), as GPT-2 has it."""
    return nn.functional.gelu(x, approximate="tanh")


class FeedForward(nn.Module):
    """``down(activation(up(x)))``, or ``down(activation(gate(x)) * up(x))`` (Shazeer 2020)."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        """activation: the name of one of ACTIVATIONS. Raises UnknownVariant for another."""
        super().__init__()
        chosen = ACTIVATIONS[activation]
        self.activation: Callable[[Tensor], Tensor] = resolve(chosen.function)
        self.up = nn.Linear(d_model, d_ff, bias=bias)
        self.gate = nn.Linear(d_model, d_ff, bias=bias) if chosen.is_gated else None
        self.down = nn.Linear(d_ff, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x: (B, T, d_model) to the same shape."""
        if self.gate is None:
            hidden = self.activation(self.up(x))
        else:
            hidden = self.activation(self.gate(x)) * self.up(x)
        recorder.record(self, hidden=hidden)
        out: Tensor = recorder.changed(self, "output", self.down(self.dropout(hidden)), x)
        recorder.record(self, input=x, output=out)
        return out


def make_norm(name: str, d_model: int, eps: float = NORM_EPS) -> nn.Module:
    """Return a norm over the last axis of (B, T, d_model). Raises UnknownVariant."""
    norm: nn.Module = resolve(NORMS[name].layer)(d_model, eps=eps)
    return norm
