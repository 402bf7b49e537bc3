"""The weights of a model under Hugging Face's names: what ``model`` reads, the other way round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfm_core.anatomy.hugging_face import COLUMNS, pattern_of
from tfm_core.config.shape import TextShape
from tfm_core.models.build import Model
from tfm_core.pretrained.architectures import Fit
from tfm_core.pretrained.families import TRANSPOSED
from tfm_core.pretrained.rewriting import Weights, joins_words, rewritten
from tfm_core.pretrained.stream import reordered

_WHOLE = ("vit.embeddings.cls_token", "vit.embeddings.position_embeddings")
"""Tensors that are no module's weight there."""
_AT_TOP = ("final_logits_bias",)
"""Tensors in front of whose names nothing stands."""


def tensors_of(model: Model, fit: Fit) -> Weights:
    """Return the tensors of a model, by their names in Transformers."""
    tensors: Weights = {}
    for name, value in rewritten(model, fit.ours, fit.form).items():
        names = _names(name, fit)
        parts = _UNDO[fit.architecture.name](name, value, len(names), fit)
        for one, part in zip(names, parts, strict=True):
            tensors[one] = part.contiguous().clone()
    return tensors | _unused(fit)


def answer_of(written: Model, fit: Fit, inputs: Sequence[Tensor]) -> Tensor:
    """Return what a model that was written and read again makes of inputs of ours, as ours does.

    inputs: as our model takes them; where words are joined, without padding.
    """
    ours, new = fit.ours.shape, fit.form.shape
    if not (isinstance(ours, TextShape) and isinstance(new, TextShape)):
        pictures: Tensor = written(*inputs)
        return pictures
    src, tgt_in = inputs
    first = first_target(fit)
    if new.one_vocabulary:
        joined = torch.cat([src, tgt_in + first], 1)
        logits: Tensor = written(joined[:, :0], joined)[:, src.size(1) :]
    else:
        logits = written(src, tgt_in)
    return logits[..., first : first + ours.tgt_vocabulary]


def first_target(fit: Fit) -> int:
    """Return the id of the first word of the target's vocabulary."""
    shape = fit.ours.shape
    if not isinstance(shape, TextShape) or not joins_words(fit.ours.model, shape):
        return 0
    return shape.src_vocabulary


def _names(name: str, fit: Fit) -> tuple[str, ...]:
    """Return the names there of a parameter here."""
    family = fit.architecture.family
    if name in fit.plan.sources:
        base = family.base or ""
        return tuple(one if one in _AT_TOP else base + one for one in fit.plan.sources[name])
    module, _dot, leaf = name.rpartition(".")
    pattern, layer = pattern_of(module or name)
    theirs = tuple(one.replace("{i}", layer) for one in COLUMNS[family.column][pattern])
    ending = "weight" if leaf == "table" else leaf
    return tuple(one if one in _WHOLE else f"{one}.{ending}" for one in theirs)


def _unused(fit: Fit) -> Weights:
    """Return the tensors of a layer that the class has and nobody reads, so that none is drawn."""
    if fit.architecture.name != "encoder-decoder":
        return {}
    width = fit.form.width
    pooler = "encoder.pooler.dense"
    return {f"{pooler}.weight": torch.zeros(width, width), f"{pooler}.bias": torch.zeros(width)}


def _split(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    """Return queries, keys and values apart, or keys and values together."""
    if n == 1:
        return [value]
    model: Any = fit.form.model
    widths = [model.d_q, model.d_kv, model.d_kv]
    return list(torch.split(value, widths if n == 3 else [model.d_q, 2 * model.d_kv]))


def _typed(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    if name == "src_positions.table":
        return [value, torch.zeros(1, value.size(1))]
    return _split(name, value, n, fit)


def _gpt2(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    parts = _split(name, value, n, fit)
    return [part.t() for part in parts] if name.endswith(TRANSPOSED) else parts


def _both(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    undo = _gpt2 if name.startswith("decoder.") else _typed
    return undo(name, value, n, fit)


def _llama(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    if name.endswith((".query_norm.weight", ".key_norm.weight")):
        return [halved(value[:, None], len(value))[:, 0]]
    parts = _split(name, value, n, fit)
    if not name.rpartition(".")[0].endswith("in_projection"):
        return parts
    d_head = fit.form.model.d_head  # type: ignore[union-attr]  # a decoder-only model
    q, k, v = parts
    if name.endswith("bias"):
        return [*(halved(part[:, None], d_head)[:, 0] for part in (q, k)), v]
    return [halved(q, d_head), halved(k, d_head), v]


def halved(weight: Tensor, d_head: int) -> Tensor:
    """Return the rows of each head, the first ones of all pairs before the second ones."""
    return weight.view(-1, d_head // 2, 2, weight.size(1)).transpose(1, 2).reshape(weight.shape)


def _marian(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    order = torch.arange(fit.form.width).view(-1, 2).t().flatten()
    value = reordered(name, value, order)
    return [value[None]] if name == "output.bias" else _split(name, value, n, fit)


def _kernel(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    if name == "stem.projection.weight":
        size = fit.form.model.patch_size  # type: ignore[union-attr]  # a model of pictures
        return [value.view(len(value), -1, size, size)]
    return _split(name, value, n, fit)


def _vit(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    return [value[None]] if name == "positions.table" else _kernel(name, value, n, fit)


_UNDO: Mapping[str, Callable[[str, Tensor, int, Fit], list[Tensor]]] = {
    "gpt2": _gpt2,
    "llama": _llama,
    "mistral": _llama,
    "qwen3": _llama,
    "qwen2": _llama,
    "mixtral": _llama,
    "encoder-decoder": _both,
    "marian": _marian,
    "megatron-bert": _typed,
    "vit": _vit,
    "siglip": _kernel,
}
"""What each ``adapt`` of ``families`` does, undone."""
