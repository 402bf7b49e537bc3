"""Positions inside attention: RoPE rotates queries and keys, ALiBi and T5 add to the scores."""

from textwrap import dedent, indent
from typing import Any

from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.positions.added import WAVES
from tfm_core.variants.positions.position import (
    Function,
    Inside,
    Position,
    Style,
    always_possible,
)
from tfm_core.variants.positions.scaling import ROPE_SCALINGS

_ROTATE = Function(
    "rotate",
    dedent('''\
    def rotate(x, waves):
        """Turn pairs of dimensions by an angle that grows with position (Su et al. 2021)."""
        sin, cos = waves[:, 0::2], waves[:, 1::2]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)
    '''),
)


ROPE_SETTINGS = ("rope_theta", "rope_scaling", "rope_factor", "rope_original_len")


def _functions(config: Any) -> tuple[Function, ...]:
    """Return the functions of the generated file, with a model's base and scaling in them."""
    base, scaling, factor, length = (getattr(config, name) for name in ROPE_SETTINGS)
    source = WAVES.source.replace("10000.0", f"{float(base)!r}")
    if (code := ROPE_SCALINGS[scaling].code) is not None:
        before, behind = source.split("    angles =", 1)
        scaled = indent(code.format(factor=f"{factor:g}", length=length), "    ")
        source = f"{before}{scaled}\n    angles ={behind}"
    return Function(WAVES.name, source), _ROTATE


def _where(config: Any) -> tuple[str, ...]:
    """Return how far pair m of dimensions is turned at position i."""
    base, scaling, factor, length = (getattr(config, name) for name in ROPE_SETTINGS)
    angle = rf"&\theta_m = {base:.15g}^{{-2m/{config.d_head}}}"
    scaled = (
        row.format(factor=f"{factor:g}", length=length) for row in ROPE_SCALINGS[scaling].latex
    )
    turned = N_(r"&R_i\text{: turns pairs by the angles }i\,\theta_m")
    return turned, angle, *scaled


def _odd_head(d_model: int, d_head: int) -> str | None:
    if d_head % 2:
        return Paragraph("variants/odd-head", d_head=d_head)
    return None


ROTARY = Position(
    name="rotary",
    label=N_("Rotary"),
    help=N_("Rotates queries and keys (RoPE, Su et al. 2021)."),
    source="Su et al. 2021, Eq. 34",
    acts_on="queries and keys",
    layer="tfm_core.layers.relative:Rotation",
    init_args=("d_head", *ROPE_SETTINGS),
    needs_grid=False,
    is_learned=False,
    impossible=_odd_head,
    functions=(WAVES, _ROTATE),
    functions_of=_functions,
    topic="position-rotary",
    words=Paragraph("variants/walk-rotary"),
    style=Style("green", "dashdot", "diamond"),
    added=None,
    inside=Inside(
        query=r"(R_i q_i)^\top",
        key=r"(R_j k_j)",
        plus="",
        where=_where,
        title=N_("queries, rotated"),
        topic="rotary",
        words=Paragraph("variants/rotary"),
        parameters={},
        saved_once="{length} d_head",
        by_distance=None,
        init=None,
        made="sinusoidal(x.size(1), D_HEAD).to(x)",
        argument="waves",
        turn="q, k = rotate(q, waves), rotate(k, waves)",
    ),
)

_ALIBI = Function(
    "alibi",
    dedent('''\
    def alibi(length):
        """(N_HEADS, length, length): minus slope times distance (Press et al. 2022)."""

        def powers(n):
            return [2.0 ** (-8.0 * (i + 1) / n) for i in range(n)]

        below = 2 ** math.floor(math.log2(N_HEADS))
        slopes = powers(below) + powers(2 * below)[0::2][: N_HEADS - below]
        positions = torch.arange(length, dtype=torch.float32)
        distance = (positions[:, None] - positions[None, :]).abs()
        return -torch.tensor(slopes)[:, None, None] * distance
    '''),
)

ALIBI = Position(
    name="alibi",
    label=N_("ALiBi"),
    help=N_("Lowers each score with distance (Press et al. 2022)."),
    source="Press et al. 2022, section 3",
    acts_on="scores",
    layer="tfm_core.layers.relative:Alibi",
    init_args=("n_heads",),
    needs_grid=False,
    is_learned=False,
    impossible=always_possible,
    functions=(_ALIBI,),
    topic="position-alibi",
    words=Paragraph("variants/walk-alibi"),
    style=Style("purple", "longdash", "triangle-up"),
    added=None,
    inside=Inside(
        query=r"q_i^\top",
        key="k_j",
        plus=r" - m_h\,|i - j|",
        where=None,
        title=N_("ALiBi's penalty"),
        topic="alibi",
        words=N_("ALiBi subtracts slope × distance; each head has its own slope."),
        parameters={},
        saved_once="",
        by_distance=Paragraph("variants/alibi-slopes"),
        init=None,
        made="alibi(x.size(1)).to(x)",
        argument="bias",
        turn=None,
    ),
)

_BUCKET = Function(
    "bucket",
    dedent('''\
    def bucket(offsets, is_causal):
        """The bucket of each offset, key - query: the near ones exact, up to 128 by logarithm."""
        n = 32 if is_causal else 16  # of 32: behind and ahead share them
        distance = (-offsets).clamp(min=0) if is_causal else offsets.abs()
        first = torch.zeros_like(offsets) if is_causal else n * (offsets > 0)
        exact = n // 2
        further = (distance.clamp(min=1) / exact).log() / math.log(128 / exact) * (n - exact)
        return first + distance.where(distance < exact, (exact + further.long()).clamp(max=n - 1))
    '''),
)

_RELATIVE_BIAS = Function(
    "RelativeBias",
    dedent('''\
    class RelativeBias(nn.Module):
        """A trained number a head for the bucket of each offset (Raffel et al. 2020)."""

        def __init__(self, is_causal):
            super().__init__()
            self.is_causal = is_causal
            self.table = nn.Parameter(torch.randn(32, N_HEADS) * D_MODEL**-0.5)

        def forward(self, x):
            at = torch.arange(x.size(1), device=x.device)
            chosen = bucket(at[None, :] - at[:, None], self.is_causal)
            return F.embedding(chosen, self.table).movedim(-1, 0)  # (H, T, T)
    '''),
)

T5_BIAS = Position(
    name="t5-bias",
    label=N_("T5 bias"),
    help=N_("Adds a trained number per bucket of offsets (T5)."),
    source="Raffel et al. 2020, section 2.1",
    acts_on="scores",
    layer="tfm_core.layers.relative:T5RelativeBias",
    init_args=("n_heads", "d_model", "is_causal"),
    needs_grid=False,
    is_learned=True,
    impossible=always_possible,
    functions=(_BUCKET, _RELATIVE_BIAS),
    topic="position-t5-bias",
    words=Paragraph("variants/walk-t5-bias"),
    style=Style("ochre", "longdashdot", "hexagram"),
    added=None,
    inside=Inside(
        query=r"q_i^\top",
        key="k_j",
        plus=r" + b_{h,\,\beta(j - i)}",
        where=lambda config: (N_(r"&\beta(j - i)\text{: the bucket of the offset, one of }32"),),
        title=N_("T5's bias"),
        topic="t5-bias",
        words=Paragraph("variants/t5-bias"),
        parameters={"table": ("n_buckets", "n_heads")},
        saved_once="2 {queries} {length}",
        by_distance=None,
        init="RelativeBias({is_causal})",
        made="self.relative(x)",
        argument="bias",
        turn=None,
    ),
)
