"""The functions of a generated file: heads, masks, and what positions need, as text."""

from __future__ import annotations

from textwrap import dedent

from tfm_core.config import CaptionerConfig, ModelConfig, RecurrentConfig
from tfm_core.inspect.source import recurrent
from tfm_core.inspect.source.layers import CROSS
from tfm_core.variants.positions import POSITIONS


def functions(config: ModelConfig) -> list[str]:
    """Return the sources of the functions that a model calls, in order."""
    if isinstance(config, RecurrentConfig):
        return [recurrent.PLACED]
    parts = [SPLIT]
    kinds = [POSITIONS[config.position]]
    if isinstance(config, CaptionerConfig):
        kinds.append(POSITIONS[config.text_position])
    needed = [function.source for kind in kinds for function in kind.functions]
    parts += dict.fromkeys(needed)  # once, where both need the same
    if config.family in {*CROSS, "decoder-only"}:
        parts.append(CAUSAL)
    if getattr(config, "window", 0):
        parts.append(WINDOW)
    return parts


SPLIT = dedent('''\
    def split(x):
        """(B, T, D_MODEL) to (B, H, T, D_HEAD): each head gets its own dimensions."""
        return x.unflatten(-1, (N_HEADS, D_HEAD)).transpose(1, 2)
    ''')

CAUSAL = dedent('''\
    def causal(length, device):
        """(length, length): a query sees itself and the keys before it."""
        return torch.ones(length, length, dtype=torch.bool, device=device).tril()
    ''')

WEIGHTS = dedent('''\
    def attention_weights(model):
        """By layer: the weights of its last pass, (B, H, Q, K) for Q queries and K keys."""
        parts = model.named_modules()
        return {name: part.weights for name, part in parts if isinstance(part, MultiHeadAttention)}
    ''')

WINDOW = dedent('''\
    def window(length, device):
        """(length, length): a query sees keys at most WINDOW tokens away."""
        positions = torch.arange(length, device=device)
        return (positions[:, None] - positions[None, :]).abs() <= WINDOW
    ''')
