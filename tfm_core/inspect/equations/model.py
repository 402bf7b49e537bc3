"""The equations of exactly one configuration, in LaTeX: what is not set is not written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfm_core.anatomy import Anatomy, Part, anatomy
from tfm_core.choices.config import ModelConfig, TransformerConfig
from tfm_core.choices.config.shape import Shape, TextShape
from tfm_core.choices.variants.poolings import POOLINGS, Pooling
from tfm_core.choices.variants.positions import POSITIONS, Added
from tfm_core.choices.variants.stems import STEMS
from tfm_core.inspect.equations import blocks, recurrent
from tfm_core.inspect.equations.blocks import Equation, aligned, dropped
from tfm_core.sentences import N_

__all__ = ["Equation", "equations"]


def equations(config: ModelConfig, shape: Shape) -> dict[str, Equation]:
    """Return the equations that the parts of a model stand in, by their names."""
    model = anatomy(config, shape)
    names = {name for part, _n in model.counted for name in part.equations}
    known = recurrent.EQUATIONS if model.of_kind("cell") else _EQUATIONS
    return {name: make(config, model) for name, make in known.items() if name in names}


def _embedding(config: TransformerConfig, model: Anatomy) -> Equation:
    """Return the rows of patches and of words, as far as there are any, and of positions."""
    stems, layers = model.of_kind("stem"), {part.layer for part in model.folded}
    added = [POSITIONS[part.variant].added for part in model.of_kind("positions")]
    has_words, rows, source = "TokenEmbedding" in layers, list[str](), ""
    if stems:
        stem = STEMS[stems[0].variant]
        x = dropped(config, _plus(rf"W_p\,{stem.latex} + b_p", added[0]))
        row = N_(r"\text{{patch: }}x_t &= {x}", x=x) if has_words else f"x_t &= {x}"
        rows, source = [*stem.rows, row], stem.source
    if "VisionTransformer" in layers:  # its CLS token stands at place 0
        cls = f"c + {added[0].first}" if added[0] and added[0].first else "c"
        rows.insert(0, rf"\text{{CLS: }}x_0 &= {dropped(config, cls)}")
    if stems and has_words:
        word = rf"\sqrt{{{config.d_model}}}\,E_{{w_t}}"
        word = f"{word} + {added[1].of_words}" if added[1] else word
        rows.append(N_(r"\text{{word: }}y_t &= {y}", y=dropped(config, word)))
    elif has_words:
        x, source = _words(model, added[0])
        rows = [f"x_t &= {dropped(config, x)}"]
    rows += dict.fromkeys(row for kind in added if kind for row in kind.rows(config.d_model))
    return Equation(N_("Embedding and positions"), aligned(rows), source)


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
    "attention": blocks.attention,
    "experts": blocks.experts,
    "feed-forward": blocks.feed_forward,
    "block": blocks.block,
    "norm": blocks.norm,
    "model": _output,
}
