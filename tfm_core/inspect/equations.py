"""The equations of exactly one configuration, in LaTeX: what is not set is not written."""

from __future__ import annotations

from tfm_core.config import ModelConfig, RecurrentConfig, TransformerConfig, ViTConfig
from tfm_core.config.shape import ImageShape, Shape, TextShape
from tfm_core.inspect import equations_recurrent
from tfm_core.inspect.equation import Equation

__all__ = ["Equation", "equations"]


def equations(config: ModelConfig, shape: Shape) -> dict[str, Equation]:
    """Return the equations by the sections of the generated file."""
    if isinstance(config, RecurrentConfig):
        return equations_recurrent.equations(config, shape)
    return {
        "embedding": _embedding(config, shape),
        "attention": _attention(config),
        "feed-forward": _feed_forward(config),
        "block": _block(config),
        "norm": _norm(config),
        "model": _output(config, shape),
    }


def _embedding(config: TransformerConfig, shape: Shape) -> Equation:
    x = rf"\sqrt{{{config.d_model}}}\,E_{{w_t}}"
    source = "Vaswani et al. 2017, section 3.4"
    if isinstance(shape, TextShape) and not shape.scale_embedding:
        x, source = "E_{w_t}", "not scaled by sqrt(d_model), as in GPT-2 and BERT"
    if isinstance(config, ViTConfig):
        x, source = r"W_p\,\mathrm{patch}_t + b_p", "Dosovitskiy et al. 2021, Eq. 1"
    position = {
        "learned": "P_t",
        "sinusoidal": r"\mathrm{PE}_t",
        "sinusoidal-2d": r"\mathrm{PE}_{\mathrm{row}(t),\mathrm{column}(t)}",
    }.get(config.position)
    latex = f"x_t = {x}" + (f" + {position}" if position else "")
    if config.position == "sinusoidal":
        angle = r"\frac{t}{10000^{2i/" + str(config.d_model) + "}}"
        latex = (
            rf"\begin{{aligned}}x_t &= {x} + {position}\\ "
            rf"\mathrm{{PE}}_{{t,2i}} &= \sin{angle}\\ "
            rf"\mathrm{{PE}}_{{t,2i+1}} &= \cos{angle}\end{{aligned}}"
        )
    return Equation("Embedding and positions", latex, source)


def _attention(config: TransformerConfig) -> Equation:
    q, k, extra = "q_i", "k_j", ""
    if config.position == "rotary":
        q, k = r"R_i q_i", r"R_j k_j"
    if config.position == "alibi":
        extra = r" - m_h\,|i - j|"
    bias = r" + b" if config.bias else ""
    latex = (
        rf"\begin{{aligned}}a_{{ij}} &= \mathrm{{softmax}}_j\left(\frac{{({q})^\top ({k})}}"
        rf"{{\sqrt{{{config.d_head}}}}}{extra}\right)\\ "
        rf"\mathrm{{head}}_h &= \sum_j a_{{ij}} v_j\\ "
        rf"\mathrm{{out}} &= [\mathrm{{head}}_1; \dots; \mathrm{{head}}_{{{config.n_heads}}}]"
        rf"\,W_O{bias}\end{{aligned}}"
    )
    if q == "q_i":
        latex = latex.replace(r"(q_i)^\top (k_j)", r"q_i^\top k_j")
    sources = {"rotary": "; Su et al. 2021, Eq. 34", "alibi": "; Press et al. 2022, section 3"}
    source = f"Vaswani et al. 2017, Eq. 1{sources.get(config.position, '')}"
    return Equation("Multi-head attention", latex, source)


def _feed_forward(config: TransformerConfig) -> Equation:
    first, last = (" + b_1", " + b_2") if config.bias else ("", "")
    latex = {
        "relu": rf"\max(0,\, x W_1{first})\, W_2{last}",
        "gelu": rf"\mathrm{{GELU}}(x W_1{first})\, W_2{last}",
        "swiglu": (
            rf"\left(\mathrm{{SiLU}}(x W_g{' + b_g' if config.bias else ''})"
            rf" \odot (x W_1{first})\right) W_2{last}"
        ),
    }[config.activation]
    source = "Shazeer 2020" if config.activation == "swiglu" else "Vaswani et al. 2017, Eq. 2"
    return Equation("Feed-forward", rf"\mathrm{{FFN}}(x) = {latex}", source)


def _block(config: TransformerConfig) -> Equation:
    inside = r"\mathrm{Norm}(x)" if config.norm_first else "x"
    drop = (lambda y: rf"\mathrm{{Dropout}}({y})") if config.dropout else (lambda y: y)
    names = [r"\mathrm{SelfAttention}"]
    names += [r"\mathrm{CrossAttention}"] if config.family == "encoder-decoder" else []
    lines = []
    for name in [*names, r"\mathrm{FFN}"]:
        memory = r", \mathrm{memory}" if "Cross" in name else ""
        total = f"x + {drop(f'{name}({inside}{memory})')}"
        joined = total if config.norm_first else rf"\mathrm{{Norm}}({total})"
        lines.append(rf"x &\leftarrow {joined}")
    latex = r"\begin{aligned}" + r"\\ ".join(lines) + r"\end{aligned}"
    if config.norm_first:
        return Equation("A block, pre-norm", latex, "Xiong et al. 2020")
    return Equation("A block, post-norm", latex, "Vaswani et al. 2017, section 3.1")


def _norm(config: TransformerConfig) -> Equation:
    if config.norm == "rmsnorm":
        latex = r"\mathrm{Norm}(x) = \frac{x}{\sqrt{\frac{1}{d}\sum_i x_i^2 + 10^{-5}}} \odot g"
        return Equation("RMSNorm", latex, "Zhang & Sennrich 2019")
    latex = r"\mathrm{Norm}(x) = \frac{x - \mu}{\sqrt{\sigma^2 + 10^{-5}}} \odot g + b"
    return Equation("LayerNorm", latex, "Ba et al. 2016")


def _output(config: TransformerConfig, shape: Shape) -> Equation:
    bias = " + b"
    if isinstance(config, ViTConfig):
        pooled = r"x_{\mathrm{CLS}}" if config.pooling == "cls" else r"\frac{1}{n}\sum_t x_t"
        latex = (
            rf"p(\mathrm{{class}}) = \mathrm{{softmax}}\left(\left({pooled}\right) W{bias}\right)"
        )
        return Equation("The answer", latex, "Dosovitskiy et al. 2021, Eq. 4")
    assert not isinstance(shape, ImageShape)
    if shape.head == "pooler":
        return Equation("The answer", r"y = \tanh(x_1 W + b)", "Devlin et al. 2019")
    if shape.is_label:
        return _label(config, shape)
    matrix = r"E^\top" if config.tie_embeddings else "W"
    bias = bias if config.bias and shape.output_bias else ""
    latex = rf"p(y_t) = \mathrm{{softmax}}(x_t\,{matrix}{bias})"
    source = "Press & Wolf 2017" if config.tie_embeddings else "Vaswani et al. 2017, section 3.4"
    return Equation("The answer", latex, source)


def _label(config: TransformerConfig, shape: TextShape) -> Equation:
    pooled = r"x_{\mathrm{CLS}}" if shape.head == "cls" else r"\frac{1}{n}\sum_t x_t"
    bias = " + b" if config.bias and shape.output_bias else ""
    latex = rf"p(\mathrm{{label}}) = \mathrm{{softmax}}\left(\left({pooled}\right) W{bias}\right)"
    source = "Devlin et al. 2019, section 3" if shape.head == "cls" else "mean pooling"
    return Equation("The answer", latex, source)
