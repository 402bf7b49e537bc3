"""A model in another form that gives the same answers, so that a published architecture holds it.

Each step is exact but for rounding:

- Tables of words take in the factor sqrt(d_model), and what is added for positions becomes a table.
- Shared keys and values are written out for each head, and a missing bias is zeros.
- Two vocabularies become one, the source's words first; these are never written.
- A bias of the output layer becomes a column of its matrix. The model gets ``n_heads`` dimensions
  more, which hold zeros until the last norm, whose bias puts a 1 there. For the norms to divide by
  the same, all that is added to the stream has the mean zero, which they take off anyway
  (LayerNorm: Ba et al. 2016, Eq. 4), and their gains and epsilons are scaled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.choices.config import ModelConfig, TransformerConfig, built
from tfm_core.choices.config.shape import Shape, TextShape
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.models.build import Model, build_model, init_on_meta
from tfm_core.models.ends import TokenEmbedding

NEVER = -10_000.0
"""The bias of a word that is never written: its probability is 0 in any precision."""

Weights = dict[str, Tensor]
Shapes = dict[str, torch.Size]


@dataclass(frozen=True, slots=True)
class Form:
    """What a model is built from."""

    model: ModelConfig
    shape: Shape

    @property
    def width(self) -> int:
        """The width of the stream."""
        return built(self.model).d_model

    @property
    def has_output_bias(self) -> bool:
        """Whether the last layer of a model of texts has a bias."""
        assert isinstance(self.shape, TextShape)
        return self.shape.output_bias and bool(getattr(self.model, "bias", True))


def rewritten(model: Model, ours: Form, form: Form) -> Weights:
    """Return the weights of a model as a model of another form has them, by name.

    ours: what the model was built from. The model stays as it is. Raises ValueError where that form
    cannot give its answers.
    """
    with init_on_meta():
        wanted = {
            name: parameter.shape
            for name, parameter in build_model(form.model, form.shape).named_parameters()
        }
    with torch.no_grad():
        weights = {
            name: parameter.detach().float().cpu().clone()
            for name, parameter in model.named_parameters(remove_duplicate=False)
        }
        for step in (_heads, _tables, _positions, _biases, _words, _wider):
            step(weights, model, ours, form, wanted)
    chosen = {name: weights[name].contiguous() for name in wanted if name in weights}
    for name, shape in wanted.items():
        if name not in chosen or chosen[name].shape != shape:
            raise ValueError(f"{name} does not fit the form {form}.")
    return chosen


def _heads(weights: Weights, model: Model, ours: Form, form: Form, wanted: Shapes) -> None:
    """Write out keys and values that several heads share."""
    if not _is_grouped(ours.model) or _is_grouped(form.model):
        return
    for path, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            for leaf in ("weight", "bias"):
                name = f"{path}.in_projection.{leaf}"
                if name in weights:
                    weights[name] = module.by_head(weights[name])


def _is_grouped(model: ModelConfig) -> bool:
    return isinstance(model, TransformerConfig) and model.is_grouped


def _tables(weights: Weights, model: Model, ours: Form, form: Form, wanted: Shapes) -> None:
    """Multiply tables of words by what is multiplied afterwards, where that is no longer done."""
    if not isinstance(form.shape, TextShape) or form.shape.scale_embedding:
        return
    for path, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, TokenEmbedding):
            weights[f"{path}.table.weight"] *= module.scale


def _positions(weights: Weights, model: Model, ours: Form, form: Form, wanted: Shapes) -> None:
    """Keep what is added for positions as a table."""
    for path, module in model.named_modules():
        name = f"{path}.table"
        if path.endswith("positions") and name in wanted and name not in weights:
            add: Callable[[Tensor], Tensor] = module
            weights[name] = add(torch.zeros(1, wanted[name][0], ours.width))[0].clone()


def _biases(weights: Weights, model: Model, ours: Form, form: Form, wanted: Shapes) -> None:
    """Make biases of zeros."""
    for name in wanted.keys() - weights.keys():
        if name.endswith(".bias"):
            weights[name] = torch.zeros(len(weights[f"{name.removesuffix('bias')}weight"]))


def _words(weights: Weights, model: Model, ours: Form, form: Form, wanted: Shapes) -> None:
    """Join two vocabularies; give the output layer a bias, which ``_wider`` takes in."""
    if not joins_words(ours.model, ours.shape):
        return
    assert isinstance(ours.shape, TextShape)
    n_src = ours.shape.src_vocabulary
    src, tgt, out = "src_embedding.table.weight", "tgt_embedding.table.weight", "output.weight"
    weights[src] = weights[tgt] = torch.cat([weights[src], weights[tgt]])
    bias = weights.get("output.bias", torch.zeros(len(weights[out])))
    weights[out] = F.pad(weights[out], (0, 0, n_src, 0))
    weights["output.bias"] = F.pad(bias, (n_src, 0), value=NEVER)


def _wider(weights: Weights, model: Model, ours: Form, form: Form, wanted: Shapes) -> None:
    """Let more dimensions carry the bias of the output layer."""
    width, wide = ours.width, form.width
    if width == wide:
        return
    n_heads = form.model.n_heads
    n, more = width // n_heads, (wide - width) // n_heads
    bias = weights.pop("output.bias")
    for name, value in weights.items():
        axis = _stream_axis(name)
        if axis is not None and _ADDED.fullmatch(name):
            value = value - value.mean(axis, keepdim=True)
        if name.endswith("_norm.weight"):
            value = value * (width / wide) ** 0.5
        if ".in_projection." in name:
            parts = value.view(3, n_heads, n, -1) * 1.0
            parts[0] *= ((n + more) / n) ** 0.5  # scores are divided by a larger root
            value = (
                F.pad(parts, (0, 0, 0, more)).view(3 * wide, -1).view(3 * wide, *value.shape[1:])
            )
        if name.endswith(".out_projection.weight"):
            value = F.pad(value.view(len(value), n_heads, n), (0, more)).flatten(1)
        if axis is not None:
            value = F.pad(value.movedim(axis, -1), (0, wide - width)).movedim(-1, axis)
        weights[name] = value
    weights["output.weight"][:, width] = bias
    weights["decoder.final_norm.bias"][width] = 1


_ADDED = re.compile(
    r".*\.(out_projection|down)\.(weight|bias)|\w+_embedding\.table\.weight|positions\.table"
)
"""The parameters of a language model whose vectors are added to the stream."""


def _stream_axis(name: str) -> int | None:
    """Return the axis of a parameter that is the residual stream, None for none of them."""
    if name.endswith((".in_projection.bias", ".up.bias")):
        return None
    return 0 if name.endswith((".out_projection.weight", ".down.weight")) else -1


def joins_words(model: ModelConfig, shape: Shape) -> bool:
    """Return whether a model reads words of two tables in one sequence."""
    is_one = not isinstance(shape, TextShape) or shape.one_vocabulary
    return model.family == "decoder-only" and not is_one
