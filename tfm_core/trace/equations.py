"""The equations of exactly one configuration, in LaTeX: what is not set is not written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tfm_core.anatomy import Anatomy, Attention, Part, Sublayer, anatomy, sublayers
from tfm_core.choices.config import ModelConfig, RecurrentConfig, TransformerConfig, built
from tfm_core.choices.config.shape import Shape, TextShape
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.forms import CAUSALITIES, RESIDUALS, SCALES
from tfm_core.choices.variants.norms import NO_NORM, NORMS
from tfm_core.choices.variants.positions import POSITIONS, Added
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.choices.variants.stems import POOLINGS, STEMS, Pooling
from tfm_core.sentences import N_, Sentence, listed


@dataclass(frozen=True, slots=True)
class Equation:
    """A part of the model, its LaTeX, and where it comes from."""

    title: str
    latex: str
    source: str


def equations(config: ModelConfig, shape: Shape) -> dict[str, Equation]:
    """Return the equations that the parts of a model stand in, by their names."""
    model = anatomy(config, shape)
    names = {name for part, _n in model.counted for name in part.equations}
    known = _RECURRENT if model.of_kind("cell") else _EQUATIONS
    return {name: make(config, model) for name, make in known.items() if name in names}


def _dropped(config: ModelConfig, x: str) -> str:
    """Return LaTeX with dropout around it, where the model has any."""
    return rf"\mathrm{{Dropout}}({x})" if built(config).dropout else x


def _aligned(rows: Sequence[str]) -> str:
    """Return rows one below the other, with ``&`` in line; a single row stands by itself."""
    if len(rows) == 1:
        return rows[0].replace("&", "")
    places = r"\\ ".join(f"{{row{n}}}" for n in range(len(rows)))
    return Sentence(
        rf"\begin{{{{aligned}}}}{places}\end{{{{aligned}}}}",
        {f"row{n}": row for n, row in enumerate(rows)},
    )


def _attention(config: TransformerConfig, model: Anatomy) -> Equation:
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
        rf"\mathrm{{head}}_h &= \sum_{{{keys}}} {_dropped(config, 'a_{ij}')}\, v_j",
        rf"\mathrm{{out}} &= {heads}",
        *rule,
    ]
    return Equation(N_("Multi-head attention"), _aligned(rows), source)


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


def _feed_forward(config: TransformerConfig, model: Anatomy) -> Equation:
    """Return the layer, and what its bend is where that has more than one form."""
    first, last, gate = (" + b_1", " + b_2", " + b_g") if config.bias else ("", "", "")
    chosen = ACTIVATIONS[model.of_kind("feed-forward")[0].variant]
    hidden = _dropped(config, chosen.latex(f"x W_1{first}", f"x W_g{gate}"))
    rows = [rf"\mathrm{{FFN}}(x) &= {hidden}\, W_2{last}"]
    rows += [chosen.bend] if chosen.bend else []
    return Equation(N_("Feed-forward"), _aligned(rows), chosen.source)


def _experts(config: TransformerConfig, model: Anatomy) -> Equation:
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
    return Equation(N_("Mixture of experts"), _aligned(rows), source)


def _block(config: TransformerConfig, model: Anatomy) -> Equation:
    """Return the sublayers in their order, with residuals and norms in their places."""
    parts = sublayers(model.blocks[-1])
    lines: list[str] = []
    for part in parts:
        read = r"\mathrm{Norm}(x)" if part.norm_first else "x"
        if part.is_normed:
            lines.append(rf"x &\leftarrow {read}")
            read = "x"
        change = _dropped(config, f"{_function(part.layer)[0]}({read}{_function(part.layer)[1]})")
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
        listed(notes), _aligned(lines), source if config.residual == "normal" else residual.source
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


def _norm(config: TransformerConfig, model: Anatomy) -> Equation:
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


def _embedding(config: TransformerConfig, model: Anatomy) -> Equation:
    """Return the rows of patches and of words, as far as there are any, and of positions."""
    stems, layers = model.of_kind("stem"), {part.layer for part in model.folded}
    added = [POSITIONS[part.variant].added for part in model.of_kind("positions")]
    has_words, rows, source = "TokenEmbedding" in layers, list[str](), ""
    if stems:
        stem = STEMS[stems[0].variant]
        x = _dropped(config, _plus(rf"W_p\,{stem.latex} + b_p", added[0]))
        row = N_(r"\text{{patch: }}x_t &= {x}", x=x) if has_words else f"x_t &= {x}"
        rows, source = [*stem.rows, row], stem.source
    if "VisionTransformer" in layers:  # its CLS token stands at place 0
        cls = f"c + {added[0].first}" if added[0] and added[0].first else "c"
        rows.insert(0, rf"\text{{CLS: }}x_0 &= {_dropped(config, cls)}")
    if stems and has_words:
        word = rf"\sqrt{{{config.d_model}}}\,E_{{w_t}}"
        word = f"{word} + {added[1].of_words}" if added[1] else word
        rows.append(N_(r"\text{{word: }}y_t &= {y}", y=_dropped(config, word)))
    elif has_words:
        x, source = _words(model, added[0])
        rows = [f"x_t &= {_dropped(config, x)}"]
    rows += dict.fromkeys(row for kind in added if kind for row in kind.rows(config.d_model))
    return Equation(N_("Embedding and positions"), _aligned(rows), source)


def _words(model: Anatomy, added: Added | None) -> tuple[str, str]:
    """Return the vector of a word, and where it comes from."""
    shape = model.shape
    x = rf"\sqrt{{{model.sizes['d_model']}}}\,E_{{w_t}}"
    source = "Vaswani et al. 2017, section 3.4"
    if isinstance(shape, TextShape) and not shape.scale_embedding:
        x, source = "E_{w_t}", N_("not scaled by sqrt(d_model), as in GPT-2 and BERT")
    x = _plus(x, added)
    if any(part.children for part in model.of_kind("positions")):
        x, source = rf"\mathrm{{Norm}}({x})", "Lewis et al. 2020"
    for part in model.folded:
        if part.kind == "segments":
            has_norm = len(part.children) > 1
            x = rf"\mathrm{{Norm}}({x} + S_1)" if has_norm else f"{x} + S_1"
            source = N_("Devlin et al. 2019, Fig. 2: one segment, S_1")
    return x, source


def _plus(x: str, added: Added | None) -> str:
    """Return an embedding and what a kind of positions adds to it, if anything."""
    return x if added is None else f"{x} + {added.latex}"


def _output(_config: TransformerConfig, model: Anatomy) -> Equation:
    (head,) = model.of_kind("head")
    pooled = [POOLINGS[part.variant] for part in model.of_kind("pooling")]
    last = head.children[-1] if head.children else head
    bias = " + b" if len(last.parameters) > 1 else ""
    return Equation(N_("The answer"), *_answer(head, pooled, bias))


def _answer(head: Part, pooled: list[Pooling], bias: str) -> tuple[str, str]:
    """Return the equation of a head, and where it comes from. pooled: how what it reads is made."""
    if head.layer == "Pooler":
        return r"y = \tanh(x_1 W + b)", "Devlin et al. 2019"
    if head.layer == "Identity":
        return r"y_t = x_t", N_("the vectors of the last block")
    if not pooled:
        is_tied = bool(head.parameters[0].tied_to)
        matrix = r"E^\top" if is_tied else "W"
        source = "Press & Wolf 2017" if is_tied else "Vaswani et al. 2017, section 3.4"
        return rf"p(y_t) = \mathrm{{softmax}}(x_t\,{matrix}{bias})", source
    x = rf"\left({pooled[0].latex}\right)"
    if len(head.children) > 1:
        x = rf"\max\left(0,\, {x} W_h{bias.replace('b', 'b_h')}\right)"
    is_text = head.layer == "LabelOutput"
    latex = rf"p(\mathrm{{{'label' if is_text else 'class'}}}) = \mathrm{{softmax}}"
    source = pooled[0].text_source if is_text else "Dosovitskiy et al. 2021, Eq. 4"
    return rf"{latex}\left({x} W{bias}\right)", source


_EQUATIONS: dict[str, Callable[[Any, Anatomy], Equation]] = {
    "embedding": _embedding,
    "attention": _attention,
    "experts": _experts,
    "feed-forward": _feed_forward,
    "block": _block,
    "norm": _norm,
    "model": _output,
}


def _lines(*parts: str) -> str:
    """Return equations one below the other, on a phone too, with their equals signs in line."""
    return (
        r"\begin{aligned} "
        + r" \\ ".join(p.replace(" = ", " &= ", 1) for p in parts)
        + r" \end{aligned}"
    )


def _recurrent_embedding(config: RecurrentConfig, _model: Anatomy) -> Equation:
    latex = rf"x_j = \sqrt{{{config.d_model}}}\,E_{{w_j}}"
    return Equation(N_("Embedding"), latex, N_("no positions are added"))


def _recurrent_encoder(config: RecurrentConfig, _model: Anatomy) -> Equation:
    cell, reads = CELLS[config.cell], r"h_j = f(h_{j-1}, x_j)"
    if config.is_bidirectional:
        reads = r"h_j = [\overrightarrow{h}_j; \overleftarrow{h}_j]"
    return Equation(N_("The cell f, and reading"), _lines(*cell.latex, reads), cell.source)


def _recurrent_attention(config: RecurrentConfig, _model: Anatomy) -> Equation:
    """Return score, softmax and context of one kind of attention."""
    score = ALIGNMENT_SCORES[config.attention]
    shares, context = r"\alpha_{tj} = \mathrm{softmax}_j(e_{tj})", r"c_t = \sum_j \alpha_{tj} h_j"
    return Equation(N_("Attention"), _lines(score.latex, shares, context), score.source)


def _recurrent_decoder(config: RecurrentConfig, _model: Anatomy) -> Equation:
    first, steps = r"s_0 = \tanh(W_0 h_S + b_0)", r"s_t = f(s_{t-1}, y_{t-1})"
    if config.is_bidirectional:
        first = r"s_0 = \tanh(W_0 [\overrightarrow{h}_S; \overleftarrow{h}_1] + b_0)"
    if ALIGNMENT_SCORES[config.attention].attends_before_step:
        steps = r"s_t = f(s_{t-1}, [y_{t-1}; c_t])"
    return Equation(N_("Writing"), _lines(first, steps), "Bahdanau et al. 2015, appendix A.2")


def _recurrent_model(_config: RecurrentConfig, model: Anatomy) -> Equation:
    bias = " + b" if len(model.of_kind("head")[0].parameters) > 1 else ""
    latex = rf"p(y_t) = \mathrm{{softmax}}\left(W_o \tanh(W_c [s_t; c_t]){bias}\right)"
    return Equation(N_("The answer"), latex, "Luong et al. 2015, Eq. 5 and 6")


_RECURRENT: dict[str, Callable[[Any, Anatomy], Equation]] = {
    "embedding": _recurrent_embedding,
    "encoder": _recurrent_encoder,
    "attention": _recurrent_attention,
    "decoder": _recurrent_decoder,
    "model": _recurrent_model,
}
