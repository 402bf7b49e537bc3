"""The functions of a generated file: heads, waves, slopes and masks, as text."""

from __future__ import annotations

from textwrap import dedent

from tfm_core.config import ModelConfig, RecurrentConfig
from tfm_core.inspect.source import recurrent
from tfm_core.inspect.source.layers import CROSS


def functions(config: ModelConfig) -> list[str]:
    """Return the sources of the functions that a model calls, in order."""
    if isinstance(config, RecurrentConfig):
        return [recurrent.PLACED]
    parts = [SPLIT]
    waves = {config.position, getattr(config, "text_position", "none")}
    if waves & {"sinusoidal", "sinusoidal-2d", "rotary"}:
        parts.append(SINUSOIDAL)
    if config.position == "rotary":
        parts.append(ROTATE)
    if config.position == "alibi":
        parts.append(ALIBI)
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

ROTATE = dedent('''\
    def rotate(x, waves):
        """Turn pairs of dimensions by an angle that grows with position (Su et al. 2021)."""
        sin, cos = waves[:, 0::2], waves[:, 1::2]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)
    ''')

SINUSOIDAL = dedent('''\
    def sinusoidal(length, d_model):
        """(length, d_model) of sine and cosine waves (Vaswani et al. 2017, section 3.5)."""
        rates = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()
    ''')

ALIBI = dedent('''\
    def alibi(length):
        """(N_HEADS, length, length): minus slope times distance (Press et al. 2022)."""

        def powers(n):
            return [2.0 ** (-8.0 * (i + 1) / n) for i in range(n)]

        below = 2 ** math.floor(math.log2(N_HEADS))
        slopes = powers(below) + powers(2 * below)[0::2][: N_HEADS - below]
        positions = torch.arange(length, dtype=torch.float32)
        distance = (positions[:, None] - positions[None, :]).abs()
        return -torch.tensor(slopes)[:, None, None] * distance
    ''')

CAUSAL = dedent('''\
    def causal(length, device):
        """(length, length): a query sees itself and the keys before it."""
        return torch.ones(length, length, dtype=torch.bool, device=device).tril()
    ''')

WINDOW = dedent('''\
    def window(length, device):
        """(length, length): a query sees keys at most WINDOW tokens away."""
        positions = torch.arange(length, device=device)
        return (positions[:, None] - positions[None, :]).abs() <= WINDOW
    ''')
