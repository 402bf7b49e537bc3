"""The equations inside the blocks of one configuration: attention, feed-forward, norms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from tfm_core.anatomy import Anatomy, Attention, Part, Sublayer, sublayers
from tfm_core.choices.config import ModelConfig, TransformerConfig, built
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.forms import CAUSALITIES, RESIDUALS, SCALES
from tfm_core.choices.variants.norms import NO_NORM, NORMS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.sentences import N_, Sentence, listed


@dataclass(frozen=True, slots=True)
class Equation:
    """A part of the model, its LaTeX, and where it comes from."""

    title: str
    latex: str
    source: str


def dropped(config: ModelConfig, x: str) -> str:
    """Return LaTeX with dropout around it, where the model has any."""
    return rf"\mathrm{{Dropout}}({x})" if built(config).dropout else x


def aligned(rows: Sequence[str]) -> str:
    """Return rows one below the other, with ``&`` in line; a single row stands by itself."""
    if len(rows) == 1:
        return rows[0].replace("&", "")
    places = r"\\ ".join(f"{{row{n}}}" for n in range(len(rows)))
    return Sentence(
        rf"\begin{{{{aligned}}}}{places}\end{{{{aligned}}}}",
        {f"row{n}": row for n, row in enumerate(rows)},
    )


def attention(config: TransformerConfig, model: Anatomy) -> Equation:
    """Return what a head weighs, and how the heads are joined."""
    own = [part for part in model.attentions if not part.is_cross][-1]
    is_pair = any(part.is_cross for part in model.attentions)
    scale, width = SCALES[own.scale], SCALES[own.scale].width
    source = "Vaswani et al. 2017, Eq. 1" if width == "d_head" else scale.source
    keys, rule = _keys(own, config, is_pair=is_pair)
    q, k, extra = r"q_i^\top", "k_j", ""
    kind = POSITIONS[own.relative] if own.relative else None
    if kind is not None and kind.inside is not None:
        q, k, extra = kind.inside.query, kind.inside.key, kind.inside.plus
        rule = [*(kind.inside.where(config) if kind.inside.where else ()), *rule]
        source = (
            N_("{first}; {second}, in self-attention only", first=source, second=kind.source)
            if is_pair
            else f"{source}; {kind.source}"
        )
    if own.n_kv_heads:
        group = own.n_heads // own.n_kv_heads
        rule = [rf"&\text{{each }} {group} \text{{ heads share }} k_j, v_j", *rule]
        source = N_("{first}; {second}", first=source, second="Ainslie et al. 2023")
    if own.has_qk_norm:
        norms = [rf"\frac{{{x}}}{{\mathrm{{RMS}}({x})}} \odot g_{x[0]}" for x in ("q_i", "k_j")]
        rule = [rf"q_i &\leftarrow {norms[0]}, \quad k_j \leftarrow {norms[1]}", *rule]
        source = N_("{first}; {second}", first=source, second="Dehghani et al. 2023")
    score = f"{q} {k}"
    if width is not None:
        score = rf"\frac{{{score}}}{{\sqrt{{{model.sizes[width]}}}}}"
    heads = rf"[\mathrm{{head}}_1; \dots; \mathrm{{head}}_{{{own.n_heads}}}]"
    if own.has_output:
        heads += r"\,W_O" + (" + b" if own.has_output_bias else "")
    weight = rf"a_{{ij}} &= \mathrm{{softmax}}_{{{keys}}}\left({score}{extra}\right)"
    if (sink := SINKS[own.sink]).latex is not None:
        weight = (
            rf"z_{{ij}} &= {score}{extra}\\ a_{{ij}} &= "
            rf"\frac{{e^{{z_{{ij}}}}}}{{{sink.latex} + \sum_{{{keys}}} e^{{z_{{ij}}}}}}"
        )
        source = N_("{first}; {second}", first=source, second=sink.source)
    rows = [
        weight,
        rf"\mathrm{{head}}_h &= \sum_{{{keys}}} {dropped(config, 'a_{ij}')}\, v_j",
        rf"\mathrm{{out}} &= {heads}",
        *rule,
    ]
    return Equation(N_("Multi-head attention"), aligned(rows), source)


def _keys(own: Attention, config: TransformerConfig, *, is_pair: bool) -> tuple[str, list[str]]:
    """Return which keys j query i may ask, below a sum, and rows for what holds in places only."""
    some = max(config.windows(2))  # the second of two layers may see all, but the first never does
    period: int = getattr(config, "full_every", 0)
    is_mixed = some > 0 and period > 0
    window = rf"|i - j| \le {some}" if some else ""
    rows: list[str] = []
    if is_mixed:
        every = rf"{period}, {2 * period}, \dots"
        rows = [N_(r"&{keys}\text{{, except in layers }} {every}", keys=window, every=every)]
    if not own.order:
        return ("j", rows) if is_mixed else (window or "j", [])
    rule = CAUSALITIES[own.order].rule
    if not is_pair:
        return rule(0 if is_mixed else some) or "j", rows
    alone = rule(0)
    before = [N_(r"&\text{{decoder, on itself: only }} {keys}", keys=alone)] if alone else []
    if some and not is_mixed:
        rows = [N_(r"&\text{{in self-attention: only }} {keys}", keys=window)]
    elif is_mixed:
        rows = [
            N_(
                r"&\text{{in self-attention: only }} {keys}\text{{, except in layers }} {every}",
                keys=window,
                every=every,
            )
        ]
    return "j", [*before, *rows]


def feed_forward(config: TransformerConfig, model: Anatomy) -> Equation:
    """Return the layer, and what its bend is where that has more than one form."""
    first, last, gate = (" + b_1", " + b_2", " + b_g") if config.bias else ("", "", "")
    chosen = ACTIVATIONS[model.of_kind("feed-forward")[0].variant]
    hidden = dropped(config, chosen.latex(f"x W_1{first}", f"x W_g{gate}"))
    rows = [rf"\mathrm{{FFN}}(x) &= {hidden}\, W_2{last}"]
    rows += [chosen.bend] if chosen.bend else []
    return Equation(N_("Feed-forward"), aligned(rows), chosen.source)


def experts(config: TransformerConfig, model: Anatomy) -> Equation:
    """Return what a router makes of the experts, each of which is a feed-forward layer."""
    n, top_k = config.n_experts, config.top_k
    chosen = rf"i \in \mathrm{{Top}}_{{{top_k}}}(p)"
    share = (
        "p_i"
        if top_k == 1
        else rf"\frac{{p_i}}{{\sum_{{j \in \mathrm{{Top}}_{{{top_k}}}(p)}} p_j}}"
    )
    rows = [
        r"p &= \mathrm{softmax}(x W_r)",
        rf"\mathrm{{MoE}}(x) &= \sum_{{{chosen}}} {share}\, \mathrm{{FFN}}_i(x)",
    ]
    if config.balance_weight:
        weight = f"{config.balance_weight:g}"
        rows += [
            N_(
                r"&\text{{loss}} \mathrel{{+}}= {weight} \cdot {n} \textstyle\sum_i f_i P_i",
                weight=weight,
                n=n,
            ),
            N_(
                r"&f_i \text{{: share of choices}},\; P_i \text{{: mean }} p_{index}",
                index="i",
            ),
        ]
    source = "Fedus et al. 2022, Eq. 2 to 6" if top_k == 1 else "Jiang et al. 2024, section 2.1"
    if top_k > 1 and config.balance_weight:
        source = N_("{first}; {second}", first=source, second="Fedus et al. 2022, Eq. 4 to 6")
    return Equation(N_("Mixture of experts"), aligned(rows), source)


def block(config: TransformerConfig, model: Anatomy) -> Equation:
    """Return the sublayers in their order, with residuals and norms in their places."""
    parts = sublayers(model.blocks[-1])
    lines: list[str] = []
    for part in parts:
        read = r"\mathrm{Norm}(x)" if part.norm_first else "x"
        if part.is_normed:
            lines.append(rf"x &\leftarrow {read}")
            read = "x"
        change = dropped(config, f"{_function(part.layer)[0]}({read}{_function(part.layer)[1]})")
        total = f"x + {change}" if part.has_sum else change
        behind = part.norm is not None and not part.norm_first
        lines.append(r"x &\leftarrow " + (rf"\mathrm{{Norm}}({total})" if behind else total))
    first, last = parts[0], parts[-1]
    title, source = _order(first)
    notes = [title]
    if not first.has_sum:
        notes.append(N_("without residuals"))
    if last.is_normed:
        notes.append(
            N_("residuals from the normalised value")
            if first.is_normed
            else N_("second residual from the normalised value")
        )
    if len(parts) > 2:
        notes.append(N_("cross-attention in the decoder’s only"))
    residual = RESIDUALS[config.residual]
    return Equation(
        listed(notes), aligned(lines), source if config.residual == "normal" else residual.source
    )


def _function(layer: Part) -> tuple[str, str]:
    """Return what a sublayer is called, and what it reads besides."""
    if not isinstance(layer, Attention):
        is_mixture = layer.layer == "MixtureOfExperts"
        return r"\mathrm{MoE}" if is_mixture else r"\mathrm{FFN}", ""
    if layer.is_cross:
        return r"\mathrm{CrossAttention}", r", \mathrm{memory}"
    return r"\mathrm{SelfAttention}", ""


def _order(part: Sublayer) -> tuple[str, str]:
    """Return where the norms of a block stand, and who put them there."""
    if part.norm is None:
        return N_("A block without norms"), NO_NORM.source
    if part.norm_first:
        return N_("A block, pre-norm"), "Xiong et al. 2020"
    return N_("A block, post-norm"), "Vaswani et al. 2017, section 3.1"


def norm(config: TransformerConfig, model: Anatomy) -> Equation:
    """Return the norm with its epsilon."""
    chosen = NORMS[model.of_kind("norm")[0].variant]
    assert chosen.latex is not None
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
