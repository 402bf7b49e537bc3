"""The functions of a generated file: heads, masks, and what positions need, as text."""

from __future__ import annotations

from textwrap import dedent

from tfm_core.config import CaptionerConfig, ModelConfig, RecurrentConfig, WriterConfig
from tfm_core.inspect.source import recurrent
from tfm_core.variants.causalities import CAUSALITIES
from tfm_core.variants.norms import NORMS
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
    parts += NORMS[config.norm].classes
    if isinstance(config, WriterConfig):
        parts.append(order(config))
    if getattr(config, "window", 0):
        parts.append(WINDOW)
    return parts


SPLIT = dedent('''\
    def split(x):
        """(B, T, D_MODEL) to (B, H, T, D_HEAD): each head gets its own dimensions."""
        return x.unflatten(-1, (N_HEADS, D_HEAD)).transpose(1, 2)
    ''')


def order(config: WriterConfig) -> str:
    """Return the function that says which way a decoder may look along what it writes."""
    chosen = CAUSALITIES[config.causality]
    cut = chosen.cut or ""
    if chosen.sees_future:
        cut += "  # a mistake: .tril()"
    return dedent(f'''\
        def {chosen.function}(length, device):
            """(length, length): {chosen.says}."""
            return torch.ones(length, length, dtype=torch.bool, device=device){cut}
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
