"""How a model knows where a token is, and which model takes which kind.

``POSITIONS`` holds them all, for a Vision Transformer: its tokens have rows and columns. Words have
no grid. A captioner has two stacks and one setting for what is added in each, so it takes what
acts on embeddings alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from textwrap import dedent, indent
from typing import Any, Literal

from tfm_core.choices.variants.record import Registry, Variant
from tfm_core.sentences import N_, Paragraph

LOWEST_TURNS, HIGHEST_TURNS = 1, 4
"""Llama 3: pairs that turn at most once in the original length are slowed by the whole factor, and
those that turn four times or more not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeScaling(Variant):
    """function: ``"module:name"``, from the angles of one token, the factor and the original length
    to other angles; None for none. needs_length: whether the original length matters. latex:
    rows that change the angle of pair m, with the factor and the original length to fill in. code:
    the same as lines of the generated file.
    """

    function: str | None
    needs_length: bool
    latex: tuple[str, ...]
    code: str | None


UNSCALED = RopeScaling(
    name="none",
    source="Su et al. 2021, section 3.2.2",
    function=None,
    needs_length=False,
    latex=(),
    code=None,
)
LINEAR = RopeScaling(
    name="linear",
    source="Chen et al. 2023, Eq. 5",
    function="tfm_core.layers.relative:slowed",
    needs_length=False,
    latex=(r"&\theta_m \leftarrow \theta_m / {factor}",),
    code="rates = rates / {factor}  # all pairs turn slower (Chen et al. 2023)",
)
LLAMA3 = RopeScaling(
    name="llama3",
    source="Llama 3.1, apply_scaling",
    function="tfm_core.layers.relative:slowed_by_parts",
    needs_length=True,
    latex=(
        r"&\theta_m \leftarrow \left(s_m + \frac{{1 - s_m}}{{{factor}}}\right) \theta_m",
        r"&s_m = \mathrm{{clip}}_0^1\left("
        r"\frac{{1}}{{3}}\left(\frac{{{length}\,\theta_m}}{{2\pi}} - 1\right)\right)",
    ),
    code=(
        "turns = {length} * rates / (2 * math.pi)  # of each pair over the original length\n"
        "kept = ((turns - 1) / 3).clamp(0, 1)  # pairs that turn fast stay (Llama 3.1)\n"
        "rates = rates * (kept + (1 - kept) / {factor})"
    ),
)

ROPE_SCALINGS = Registry("scaling of RoPE", UNSCALED, LINEAR, LLAMA3)


ActsOn = Literal["nothing", "embeddings", "queries and keys", "scores"]


@dataclass(frozen=True, slots=True)
class Style:
    """One style in every figure. colour: one of ``plots.palette``; dash and marker as plotly's."""

    colour: str
    dash: str
    marker: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function or a class of the generated file: its name, and its source."""

    name: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The part of a kind that is added to embeddings.

    latex: what is added to token t, of_words: the same for the words of a model that has patches
    too, first: for a CLS token at 0, or None where it gets nothing. rows: equations for all of it
    by d_model. doc, init and forward: of the class in the generated file; init is None or a line,
    in which ``{length}`` is the constant with the longest sequence.
    """

    latex: str
    of_words: str
    first: str | None
    rows: Callable[[int], tuple[str, ...]] = lambda d_model: ()
    doc: str
    init: str | None = None
    forward: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """The part of a kind that acts inside attention.

    query, key: what is multiplied, in LaTeX; plus: what follows the product, or ""; where: from a
    config to equations that explain it, or None. parameters: the shape of each trained tensor, as
    formulas; saved_once: the formula, in ``{queries}`` and ``{length}``, of the numbers that
    PyTorch keeps once for a batch. In the generated file init makes
    ``self.relative`` of a stack, or is None: ``{is_causal}`` in it tells a decoder from an encoder;
    the value ``made``, called ``argument``, is handed to every attention. turn: the line that
    changes q and k by it; None where it is a bias, added to the scores.
    """

    query: str
    key: str
    plus: str
    where: Callable[[Any], tuple[str, ...]] | None = None
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    saved_once: str = ""
    init: str | None = None
    made: str
    argument: str
    turn: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position(Variant):
    """A position kind.

    layer: ``"module:name"``, called with those of length, side, d_model, d_head, n_heads and
    is_causal that init_args names. needs_grid: it needs rows and columns, which patches have.
    is_learned: training changes it. impossible: from d_model and d_head to a sentence, or None
    where it can be. functions: of the generated file, in order; functions_of: from a config, where
    they depend on it. walk: what the walk says where vectors get their place. added, inside: by
    what it acts on; None elsewhere. inside_title: of what is added to the scores in the walk, or of
    the turned queries; inside_walk: what the walk says of it; by_distance: what it adds the farther
    a key is, None where the kind has its own view.
    """

    acts_on: ActsOn
    layer: str
    init_args: tuple[str, ...] = ()
    needs_grid: bool = False
    is_learned: bool = False
    impossible: Callable[[int, int], str | None] = lambda d_model, d_head: None
    functions: tuple[Function, ...] = ()
    walk: str = field(init=False)
    inside_title: str | None = field(init=False)
    inside_walk: str | None = field(init=False)
    by_distance: str | None = field(init=False)
    style: Style
    added: Added | None = None
    inside: Inside | None = None
    functions_of: Callable[[Any], tuple[Function, ...]] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError when a part is empty, or missing where the kind acts."""
        Variant.__post_init__(self)
        due = {"added": self.is_added}
        due |= dict.fromkeys(("inside", "inside_title", "inside_walk"), self.is_inside)
        for part, is_due in due.items():
            if (getattr(self, part) is not None) != is_due:
                what = "lacks its" if is_due else "must not have"
                raise ValueError(
                    f"Position {self.name!r} acts on {self.acts_on} and {what} {part} part."
                )
        if self.inside is not None and (self.inside.turn is None) != (self.acts_on == "scores"):
            raise ValueError(
                f"Position {self.name!r} acts on {self.acts_on}: inside.turn must be given for "
                "queries and keys, and None for scores."
            )

    @property
    def is_added(self) -> bool:
        """Whether it is added to embeddings."""
        return self.acts_on == "embeddings"

    @property
    def is_inside(self) -> bool:
        """Whether it acts inside attention."""
        return self.acts_on in ("queries and keys", "scores")

    @property
    def has_table(self) -> bool:
        """Whether it is a table of trained vectors, one a position, which ends somewhere."""
        return self.is_added and self.is_learned


# ---- added to embeddings

NO_POSITIONS = Position(
    name="none",
    source="Vaswani et al. 2017, section 3.5, says why there must be some",
    acts_on="nothing",
    layer="tfm_core.layers.positions:NoPositions",
    style=Style("grey", "dot", "x"),
)

LEARNED = Position(
    name="learned",
    source="Gehring et al. 2017, section 3.1",
    acts_on="embeddings",
    layer="tfm_core.layers.positions:LearnedPositions",
    init_args=("length", "d_model"),
    is_learned=True,
    style=Style("vermilion", "dash", "square"),
    added=Added(
        latex="P_t",
        of_words=r"P^{\mathrm{word}}_t",
        first="P_0",
        doc="Adds one trained vector a position.",
        init="self.table = nn.Parameter(0.02 * torch.randn({length}, D_MODEL))",
        forward="return x + self.table[: x.size(1)]",
    ),
)

WAVES = Function(
    "sinusoidal",
    dedent('''\
    def sinusoidal(length, d_model):
        """(length, d_model) of sine and cosine waves (Vaswani et al. 2017, section 3.5)."""
        rates = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()
    '''),
)


def _odd_width(d_model: int, d_head: int) -> str | None:
    if d_model % 2:
        return N_("Sinusoidal positions need an even d_model; it is {d_model}.", d_model=d_model)
    return None


def _waves(d_model: int) -> tuple[str, ...]:
    angle = r"\frac{t}{10000^{2i/" + str(d_model) + "}}"
    return (
        rf"\mathrm{{PE}}_{{t,2i}} &= \sin{angle}",
        rf"\mathrm{{PE}}_{{t,2i+1}} &= \cos{angle}",
    )


SINUSOIDAL = Position(
    name="sinusoidal",
    source="Vaswani et al. 2017, section 3.5",
    acts_on="embeddings",
    layer="tfm_core.layers.positions:sinusoidal_positions",
    init_args=("length", "d_model"),
    impossible=_odd_width,
    functions=(WAVES,),
    style=Style("blue", "solid", "circle"),
    added=Added(
        latex=r"\mathrm{PE}_t",
        of_words=r"\mathrm{PE}_t",
        first=r"\mathrm{PE}_0",
        rows=_waves,
        doc="Adds fixed sine and cosine waves.",
        forward="return x + sinusoidal(x.size(1), D_MODEL).to(x)",
    ),
)


def _width_without_quarters(d_model: int, d_head: int) -> str | None:
    if d_model % 4:
        return N_(
            "2-D sinusoidal positions need a d_model divisible by 4; it is {d_model}.",
            d_model=d_model,
        )
    return None


SINUSOIDAL_2D = Position(
    name="sinusoidal-2d",
    source="Dosovitskiy et al. 2021, appendix D.4",
    acts_on="embeddings",
    layer="tfm_core.layers.positions:grid_positions",
    init_args=("length", "side", "d_model"),
    needs_grid=True,
    impossible=_width_without_quarters,
    functions=(WAVES,),
    style=Style("sky", "dashdot", "square-open"),
    added=Added(
        latex=r"\mathrm{PE}_{\mathrm{row}(t),\mathrm{column}(t)}",
        of_words=r"\mathrm{PE}_{\mathrm{row}(t),\mathrm{column}(t)}",
        first=None,
        doc="Adds waves: half of the dimensions tell the row of a patch, half its column.",
        forward=dedent("""\
            waves = sinusoidal(SIDE, D_MODEL // 2)
            rows = waves[:, None].expand(SIDE, SIDE, -1)
            columns = waves[None].expand(SIDE, SIDE, -1)
            grid = torch.cat([rows, columns], -1).flatten(0, 1)
            return x + F.pad(grid, (0, 0, x.size(1) - SIDE**2, 0)).to(x)"""),
    ),
)


# ---- inside attention

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
    turned = N_(r"&R_i\text{: rotates pairs by the angles }i\,\theta_m")
    return turned, angle, *scaled


def _odd_head(d_model: int, d_head: int) -> str | None:
    if d_head % 2:
        return Paragraph("variants/odd-head", d_head=d_head)
    return None


ROTARY = Position(
    name="rotary",
    source="Su et al. 2021, Eq. 34",
    acts_on="queries and keys",
    layer="tfm_core.layers.relative:Rotation",
    init_args=("d_head", *ROPE_SETTINGS),
    impossible=_odd_head,
    functions=(WAVES, _ROTATE),
    functions_of=_functions,
    style=Style("green", "dashdot", "diamond"),
    inside=Inside(
        query=r"(R_i q_i)^\top",
        key=r"(R_j k_j)",
        plus="",
        where=_where,
        saved_once="{length} d_head",
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
    source="Press et al. 2022, section 3",
    acts_on="scores",
    layer="tfm_core.layers.relative:Alibi",
    init_args=("n_heads",),
    functions=(_ALIBI,),
    style=Style("purple", "longdash", "triangle-up"),
    inside=Inside(
        query=r"q_i^\top",
        key="k_j",
        plus=r" - m_h\,|i - j|",
        made="alibi(x.size(1)).to(x)",
        argument="bias",
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
    source="Raffel et al. 2020, section 2.1",
    acts_on="scores",
    layer="tfm_core.layers.relative:T5RelativeBias",
    init_args=("n_heads", "d_model", "is_causal"),
    is_learned=True,
    functions=(_BUCKET, _RELATIVE_BIAS),
    style=Style("ochre", "longdashdot", "hexagram"),
    inside=Inside(
        query=r"q_i^\top",
        key="k_j",
        plus=r" + b_{h,\,\beta(j - i)}",
        where=lambda config: (N_(r"&\beta(j - i)\text{: the bucket of the offset, one of }32"),),
        parameters={"table": ("n_buckets", "n_heads")},
        saved_once="2 {queries} {length}",
        init="RelativeBias({is_causal})",
        made="self.relative(x)",
        argument="bias",
    ),
)

POSITIONS = Registry(
    "position kind", NO_POSITIONS, SINUSOIDAL, LEARNED, ROTARY, ALIBI, T5_BIAS, SINUSOIDAL_2D
)


def _only(*kinds: Position) -> Registry[Position]:
    return Registry(POSITIONS.subject, *kinds)


POSITIONS_OF_WORDS = _only(*(kind for kind in POSITIONS.values() if not kind.needs_grid))
ADDED_TO_PATCHES = _only(*(kind for kind in POSITIONS.values() if not kind.is_inside))
ADDED_TO_WORDS = _only(*(kind for kind in POSITIONS_OF_WORDS.values() if not kind.is_inside))
