"""The equations of exactly one configuration, in LaTeX: what is not set is not written."""

from __future__ import annotations

from tfm_core.config import (
    CaptionerConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
    ViTConfig,
)
from tfm_core.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.inspect.equations import blocks, recurrent
from tfm_core.inspect.equations.blocks import Equation, dropped
from tfm_core.sentences import N_
from tfm_core.variants.poolings import POOLINGS, Pooling
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.stems import STEMS

__all__ = ["Equation", "equations"]


def equations(config: ModelConfig, shape: Shape) -> dict[str, Equation]:
    """Return the equations by the sections of the generated file."""
    if isinstance(config, RecurrentConfig):
        return recurrent.equations(config, shape)
    found = {
        "embedding": _embedding(config, shape),
        "attention": blocks.attention(config),
        "feed-forward": blocks.feed_forward(config),
        "block": blocks.block(config),
        "norm": blocks.norm(config),
        "model": _output(config, shape),
    }
    return {section: one for section, one in found.items() if one is not None}


def _embedding(config: TransformerConfig, shape: Shape) -> Equation:
    if isinstance(config, ViTConfig | CaptionerConfig):
        rows, source = _patches(config)
    else:
        assert isinstance(shape, TextShape)
        rows, source = _words(config, shape)
    kinds = [POSITIONS[config.position]]
    if isinstance(config, CaptionerConfig):
        kinds.append(POSITIONS[config.text_position])
    said = [row for kind in kinds if kind.added for row in kind.added.rows(config.d_model)]
    rows += dict.fromkeys(said)  # once, where both say the same
    latex = rows[0].replace("&", "")
    if len(rows) > 1:
        latex = r"\begin{aligned}" + r"\\ ".join(rows) + r"\end{aligned}"
    return Equation(N_("Embedding and positions"), latex, source)


def _words(config: TransformerConfig, shape: TextShape) -> tuple[list[str], str]:
    x, source = rf"\sqrt{{{config.d_model}}}\,E_{{w_t}}", "Vaswani et al. 2017, section 3.4"
    if not shape.scale_embedding:
        x, source = "E_{w_t}", "not scaled by sqrt(d_model), as in GPT-2 and BERT"
    x = _plus(x, config.position)
    if shape.n_segments:
        x = f"{x} + S_1"
        x, source = (
            rf"\mathrm{{Norm}}({x})" if config.has_norms else x,
            "Devlin et al. 2019, Fig. 2: one segment, S_1",
        )
    return [f"x_t &= {dropped(config, x)}"], source


def _patches(config: ViTConfig | CaptionerConfig) -> tuple[list[str], str]:
    """Return the rows of patches and, in a captioner, of words; a CLS token stands at place 0."""
    stem = STEMS[config.stem]
    x = _plus(rf"W_p\,{stem.latex} + b_p", config.position)
    if isinstance(config, CaptionerConfig):
        word = rf"\sqrt{{{config.d_model}}}\,E_{{w_t}}"
        added = POSITIONS[config.text_position].added
        word = word if added is None else f"{word} + {added.of_words}"
        return [
            *stem.rows,
            rf"\text{{patch: }}x_t &= {dropped(config, x)}",
            rf"\text{{word: }}y_t &= {dropped(config, word)}",
        ], stem.source
    rows = [*stem.rows, f"x_t &= {dropped(config, x)}"]
    if POOLINGS[config.pooling].has_cls:
        added = POSITIONS[config.position].added
        cls = f"c + {added.first}" if added is not None and added.first else "c"
        rows.insert(0, rf"\text{{CLS: }}x_0 &= {dropped(config, cls)}")
    return rows, stem.source


def _plus(x: str, position: str) -> str:
    """Return an embedding and what a kind of positions adds to it, if anything."""
    added = POSITIONS[position].added
    return x if added is None else f"{x} + {added.latex}"


def _output(config: TransformerConfig, shape: Shape) -> Equation:
    bias = " + b"
    if isinstance(config, ViTConfig):
        pooled = POOLINGS[config.pooling].latex
        latex = (
            rf"p(\mathrm{{class}}) = \mathrm{{softmax}}\left(\left({pooled}\right) W{bias}\right)"
        )
        return Equation(N_("The answer"), latex, "Dosovitskiy et al. 2021, Eq. 4")
    if isinstance(config, CaptionerConfig):
        latex = rf"p(y_t) = \mathrm{{softmax}}(x_t\,W{bias if config.bias else ''})"
        return Equation(N_("The answer"), latex, "Vaswani et al. 2017, section 3.4")
    assert not isinstance(shape, ImageShape | CaptionShape)
    if shape.head == "pooler":
        return Equation(N_("The answer"), r"y = \tanh(x_1 W + b)", "Devlin et al. 2019")
    if shape.head == "states":
        return Equation(N_("The answer"), r"y_t = x_t", N_("the vectors of the last block"))
    if shape.pooling is not None:
        return _label(config, shape, shape.pooling)
    is_tied = not isinstance(config, ViTConfig | CaptionerConfig) and config.is_tied(shape)
    matrix = r"E^\top" if is_tied else "W"
    bias = bias if config.bias and shape.output_bias else ""
    latex = rf"p(y_t) = \mathrm{{softmax}}(x_t\,{matrix}{bias})"
    source = "Press & Wolf 2017" if is_tied else "Vaswani et al. 2017, section 3.4"
    return Equation(N_("The answer"), latex, source)


def _label(config: TransformerConfig, shape: TextShape, pooling: Pooling) -> Equation:
    bias = " + b" if config.bias and shape.output_bias else ""
    pooled = rf"\left({pooling.latex}\right)"
    if shape.n_hidden:
        pooled = rf"\max\left(0,\, {pooled} W_h{bias.replace('b', 'b_h')}\right)"
    latex = rf"p(\mathrm{{label}}) = \mathrm{{softmax}}\left({pooled} W{bias}\right)"
    return Equation(N_("The answer"), latex, pooling.text_source)
