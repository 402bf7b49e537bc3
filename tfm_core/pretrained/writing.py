"""The weights of a model under Hugging Face's names: what ``model`` reads, the other way round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfm_core.anatomy.hugging_face import COLUMNS, pattern_of
from tfm_core.choices.config.shape import TextShape
from tfm_core.models.build import Model
from tfm_core.pretrained.architectures import Fit
from tfm_core.pretrained.families import TRANSPOSED
from tfm_core.pretrained.rewriting import Weights, joins_words, rewritten

_WHOLE = ("vit.embeddings.cls_token", "vit.embeddings.position_embeddings")
"""Tensors that are no module's weight there."""


def tensors_of(model: Model, fit: Fit) -> Weights:
    """Return the tensors of a model, by their names in Transformers."""
    tensors: Weights = {}
    for name, value in rewritten(model, fit.ours, fit.form).items():
        module, _dot, leaf = name.rpartition(".")
        pattern, layer = pattern_of(module or name)
        column = COLUMNS[fit.architecture.name]
        theirs = tuple(path.replace("{i}", layer) for path in column[pattern])
        ending = "weight" if leaf == "table" else leaf
        names = tuple(one if one in _WHOLE else f"{one}.{ending}" for one in theirs)
        parts = _UNDO[fit.architecture.name](name, value, len(names), fit)
        for tensor_name, part in zip(names, parts, strict=True):
            tensors[tensor_name] = part.contiguous().clone()
    return tensors


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
    joined = torch.cat([src, tgt_in + first], 1)
    logits: Tensor = written(joined[:, :0], joined)[:, src.size(1) :]
    return logits[..., first : first + ours.tgt_vocabulary]


def first_target(fit: Fit) -> int:
    """Return the id of the first word of the target's vocabulary."""
    shape = fit.ours.shape
    if not isinstance(shape, TextShape) or not joins_words(fit.ours.model, shape):
        return 0
    return shape.src_vocabulary


def _split(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    """Return queries, keys and values apart where they are so there."""
    model: Any = fit.form.model
    return [value] if n == 1 else list(torch.split(value, [model.d_q, model.d_kv, model.d_kv]))


def _gpt2(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    return [value.t() if name.endswith(TRANSPOSED) else value]


def _llama(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    parts = _split(name, value, n, fit)
    if n == 1:
        return parts
    q, k, v = parts
    d_head = fit.form.model.d_head  # type: ignore[union-attr]  # a decoder-only model
    return [_halved(q, d_head), _halved(k, d_head), v]


def _halved(weight: Tensor, d_head: int) -> Tensor:
    """Return the rows of each head, the first ones of all pairs before the second ones."""
    return weight.view(-1, d_head // 2, 2, weight.size(1)).transpose(1, 2).reshape(weight.shape)


def _vit(name: str, value: Tensor, n: int, fit: Fit) -> list[Tensor]:
    if name == "positions.table":
        return [value[None]]
    if name == "stem.projection.weight":
        size = fit.form.model.patch_size  # type: ignore[union-attr]  # a model of pictures
        return [value.view(len(value), -1, size, size)]
    return _split(name, value, n, fit)


_UNDO: Mapping[str, Callable[[str, Tensor, int, Fit], list[Tensor]]] = {
    "gpt2": _gpt2,
    "llama": _llama,
    "vit": _vit,
}
"""What each ``adapt`` of ``families`` does, undone."""
