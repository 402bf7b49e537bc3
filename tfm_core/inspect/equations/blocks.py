"""The equations inside the blocks of one configuration: attention, feed-forward, norms."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from tfm_core.config import DecoderOnlyConfig, ModelConfig, TransformerConfig, WriterConfig
from tfm_core.sentences import N_
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.causalities import CAUSALITIES
from tfm_core.variants.norms import NORMS
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.projections import PROJECTIONS
from tfm_core.variants.residuals import RESIDUALS
from tfm_core.variants.scales import SCALES


@dataclass(frozen=True, slots=True)
class Equation:
    """A part of the model, its LaTeX, and where it comes from."""

    title: str
    latex: str
    source: str


def dropped(config: ModelConfig, x: str) -> str:
    """Return LaTeX with dropout around it, where the model has any."""
    return rf"\mathrm{{Dropout}}({x})" if config.dropout else x


PAIRS = {"encoder-decoder", "captioner"}
"""The families with an encoder's and a decoder's blocks."""


def attention(config: TransformerConfig) -> Equation:
    """Return what a head weighs, and how the heads are joined."""
    kind = POSITIONS[config.position]
    keys, rule = _keys(config)
    q, k, extra = r"q_i^\top", "k_j", ""
    if kind.inside is not None:
        q, k, extra = kind.inside.query, kind.inside.key, kind.inside.plus
        rule = [*([kind.inside.where] if kind.inside.where else []), *rule]
    bias = " + b" if config.attention_bias else ""
    kind_of = PROJECTIONS[config.projections]
    score = _score(config, f"{q} {k}")
    heads = rf"[\mathrm{{head}}_1; \dots; \mathrm{{head}}_{{{config.n_heads}}}]"
    rows = [
        rf"a_{{ij}} &= \mathrm{{softmax}}_{{{keys}}}\left({score}{extra}\right)",
        rf"\mathrm{{head}}_h &= \sum_{{{keys}}} {dropped(config, 'a_{ij}')}\, v_j",
        rf"\mathrm{{out}} &= {heads}" + (rf"\,W_O{bias}" if kind_of.has_output else ""),
        *rule,
    ]
    latex = r"\begin{aligned}" + r"\\ ".join(rows) + r"\end{aligned}"
    scale = SCALES[config.scale]
    source = "Vaswani et al. 2017, Eq. 1" if scale.width == "d_head" else scale.source
    if kind.inside is not None:
        only = ", in self-attention only" if config.family in PAIRS else ""
        source += f"; {kind.source}{only}"
    return Equation(N_("Multi-head attention"), latex, source)


def _score(config: TransformerConfig, product: str) -> str:
    """Return a dot product over what divides it."""
    width = SCALES[config.scale].width
    if width is None:
        return product
    return rf"\frac{{{product}}}{{\sqrt{{{getattr(config, width)}}}}}"


def _keys(config: TransformerConfig) -> tuple[str, list[str]]:
    """Return which keys j query i may ask, below a sum, and rows for what holds in places only."""
    window = getattr(config, "window", 0)
    if not isinstance(config, WriterConfig):
        return (rf"|i - j| \le {window}" if window else "j"), []
    rule = CAUSALITIES[config.causality].rule
    if isinstance(config, DecoderOnlyConfig):
        return rule(window) or "j", []
    alone = rule(0)
    rows = [rf"&\text{{decoder, on itself: only }} {alone}"] if alone else []
    rows += [rf"&\text{{in self-attention: only }} |i - j| \le {window}"] if window else []
    return "j", rows


def feed_forward(config: TransformerConfig) -> Equation:
    """Return the layer, and what its bend is where that has more than one form."""
    first, last = (" + b_1", " + b_2") if config.bias else ("", "")
    up = f"x W_1{first}"
    gate = f"x W_g{' + b_g' if config.bias else ''}"
    chosen = ACTIVATIONS[config.activation]
    hidden = chosen.latex(up, gate)
    latex = rf"\mathrm{{FFN}}(x) &= {dropped(config, hidden)}\, W_2{last}"
    if chosen.bend is None:
        return Equation(N_("Feed-forward"), latex.replace("&", ""), chosen.source)
    latex = rf"\begin{{aligned}}{latex}\\ {chosen.bend}\end{{aligned}}"
    return Equation(N_("Feed-forward"), latex, chosen.source)


def block(config: TransformerConfig) -> Equation:
    """Return the sublayers in their order, with residuals and norms in their places."""
    residual = RESIDUALS[config.residual]
    inside = r"\mathrm{Norm}(x)" if config.has_norms and config.norm_first else "x"
    names = [r"\mathrm{SelfAttention}"]
    names += [r"\mathrm{CrossAttention}"] if config.family in PAIRS else []
    lines = []
    for name in [*names, r"\mathrm{FFN}"]:
        is_normed = residual.is_normed("feed_forward" if "FFN" in name else "attention")
        memory = r", \mathrm{memory}" if "Cross" in name else ""
        read = inside
        if is_normed:
            lines.append(rf"x &\leftarrow {inside}")
            read = "x"
        change = dropped(config, f"{name}({read}{memory})")
        total = f"x + {change}" if residual.has_sum else change
        behind = config.has_norms and not config.norm_first
        joined = rf"\mathrm{{Norm}}({total})" if behind else total
        lines.append(rf"x &\leftarrow {joined}")
    latex = r"\begin{aligned}" + r"\\ ".join(lines) + r"\end{aligned}"
    title, source = _order(config)
    title += "" if residual.has_sum else ", without residuals"
    if residual.normed:
        which = "residuals" if residual.is_normed("attention") else "second residual"
        title += f", {which} from the normalised value"
    title += "; cross-attention in the decoder's only" if config.family in PAIRS else ""
    return Equation(title, latex, source if config.residual == "normal" else residual.source)


def _order(config: TransformerConfig) -> tuple[str, str]:
    """Return where the norms of a block stand, and who put them there."""
    if not config.has_norms:
        return "A block without norms", NORMS[config.norm].source
    if config.norm_first:
        return "A block, pre-norm", "Xiong et al. 2020"
    return "A block, post-norm", "Vaswani et al. 2017, section 3.1"


def norm(config: TransformerConfig) -> Equation | None:
    """Return the norm with its epsilon, None without one."""
    chosen = NORMS[config.norm]
    if chosen.latex is None:
        return None
    latex = chosen.latex(config.d_model, _scientific(config.norm_eps))
    return Equation(chosen.label, latex, chosen.source)


def _scientific(value: float) -> str:
    """Return a positive number in LaTeX: ``10^{-5}``, or ``2.5 \\cdot 10^{-6}``."""
    _sign, digits, exponent = Decimal(str(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = rf"10^{{{exponent + len(digits) - 1}}}"
    figures = "".join(map(str, digits))
    if figures == "1":
        return power
    return rf"{figures[0]}{'.' if len(digits) > 1 else ''}{figures[1:]} \cdot {power}"
