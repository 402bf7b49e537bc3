"""Capture and intervene: keep what a model's layers saw, by module name, and change it.

    with capture(model) as cache:
        model(src, tgt_in)
    cache["encoder.layers.0.self_attention.weights"]    # (B, H, Q, K)
    cache["blocks.0.attn.hook_pattern"]    # the same, as TransformerLens calls it

Recorded are ``query, key, value, scores, masked_scores, weights, heads`` of every attention (and
``query_input, key_value_input, projected_*, split_*, mask, bias, merged, output``), ``input``,
``hidden`` and ``output`` of every feed-forward, ``gates`` of every mixture of experts,
``skipped, change, joined`` of every norm of a block (with ``normed`` before the sublayer, or
``total`` after it), ``residual`` of every block,
``input`` and ``output`` of every stack, ``ids``, ``rows`` and ``embedded`` of embeddings,
``unplaced``, ``rows`` and ``placed`` of positions, ``patches, projected, convolved`` of a stem,
``logits`` and what they are read from (``answering``, ``pooled``); of a recurrent model ``read``
and ``ends`` of its encoder, ``tops`` and ``contexts`` of its decoder, ``first`` of the bridge and
``v`` of its attention. Inside, the model is in eval mode and without gradients:
what is seen is what predicts. With ``with_grad`` the tensors stay in the graph of the output, which
they can differentiate. Attention is computed step by step only in the layers of which something is
kept that these steps alone make; the others take the fused kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tfm_core.anatomy.names import activations_of
from tfm_core.layers.recorder import CHANGEABLE, Change, changing, recording


class ActivationCache(dict[str, Tensor]):
    """Tensors by ``module name.what``: of the kinds and modules that are kept.

    Names of TransformerLens' hooks are understood, too; what they name has its axes in their order:
    queries, keys, values and heads as (B, positions, H, D).
    """

    def __init__(
        self,
        model: nn.Module,
        only: Set[str] | None,
        modules: Collection[str] | None,
        *,
        with_grad: bool = False,
    ) -> None:
        """Know the names of the model's modules."""
        super().__init__()
        self._with_grad = with_grad
        self._names = {
            id(module): name
            for name, module in model.named_modules()
            if modules is None or name in modules
        }
        self._only = only

    def __missing__(self, key: str) -> Tensor:
        """Return what TransformerLens calls so. Raises KeyError for other names."""
        for one in activations_of(key):
            if one.key in self and (not one.only_if or one.only_if in self):
                found = self[one.key]
                return found.transpose(1, 2) if one.swaps else found
        raise KeyError(key)

    def wants(self, module: object, kinds: Collection[str]) -> bool:
        """Return whether tensors of one of these kinds of ``module`` are kept."""
        is_kept = self._only is None or not self._only.isdisjoint(kinds)
        return is_kept and id(module) in self._names

    def record(self, module: object, tensors: dict[str, Tensor]) -> None:
        """Keep the tensors of a module of this model."""
        name = self._names.get(id(module))
        if name is None:
            return
        for kind, tensor in tensors.items():
            if self._only is None or kind in self._only:
                self[f"{name}.{kind}"] = tensor if self._with_grad else tensor.detach()

    def of(self, kind: str) -> dict[str, Tensor]:
        """Return the tensors of one kind by module name: ``of("weights")``."""
        end = f".{kind}"
        return {key.removesuffix(end): value for key, value in self.items() if key.endswith(end)}

    def masks(self) -> dict[str, npt.NDArray[np.bool_]]:
        """Return the mask of each recorded map. Both ``weights`` and ``mask`` must be recorded."""
        applied = self.of("mask")
        everything = np.ones((1, 1, 1, 1), np.bool_)
        return {
            name: np.array(applied[name].cpu().numpy(), ndmin=4) if name in applied else everything
            for name in self.of("weights")
        }


@contextmanager
def capture(
    model: nn.Module,
    only: Set[str] | None = None,
    *,
    modules: Collection[str] | None = None,
    with_grad: bool = False,
) -> Iterator[ActivationCache]:
    """Record what the layers of ``model`` see inside the block; see the module's docstring.

    only: kinds of tensors, None for all. modules: their names, None for all.
    """
    cache = ActivationCache(model, only, modules, with_grad=with_grad)
    with evaluating(model), torch.set_grad_enabled(with_grad), recording(cache):
        yield cache


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Let every module be in eval mode inside the block, and then in its own mode again.

    ``model.eval()`` is not called: some models of other people change their weights in it.
    """
    modes = {module: module.training for module in model.modules()}
    try:
        for module in modes:
            module.training = False
        yield
    finally:
        for module, is_training in modes.items():
            module.training = is_training


@contextmanager
def intervene(model: nn.Module, changes: Mapping[str, Change]) -> Iterator[None]:
    """Run a model with functions put in at its hook points; the model itself stays as it is.

        with intervene(model, {"decoder.layers.1.cross_attention.merged": zero}):
            model(src, tgt_in)

    A hook point is called as in a capture, ``module name.kind``; its function gets the value and
    what it was made from, and returns what goes on in its place. Interventions add up: the outer
    acts first, and a capture inside keeps what goes on. Every stack computes all its tokens
    meanwhile, also where nothing is changed. What can be changed, and what that is made from:

    ``input`` of a stack; its ``output``, from the input of its last norm; ``residual``, what leaves
    a block, from what enters it; of a norm of a block ``normed`` and ``joined``, from what it
    norms, ``change``, the output of the sublayer, from its input, and ``skipped``, what is added to
    that, from the block's vectors (None adds nothing); of an attention ``mask``, ``relative``
    (queries, keys and bias with relative positions, from those without), ``weights``, from the
    mask, ``merged``, the heads side by side, and ``output``, from those; of a feed-forward
    ``output``, from its input; ``placed``, from vectors without positions; of a recurrent model
    ``output`` of its attention, its bridge and the ``back`` of a reader.

    Raises ValueError for a kind that cannot be changed, AttributeError for an unknown module.
    """
    by_module: dict[tuple[object, str], Change] = {}
    for point, change in changes.items():
        path, _dot, kind = point.rpartition(".")
        if kind not in CHANGEABLE:
            raise ValueError(f"{point} cannot be changed; the kinds are {sorted(CHANGEABLE)}")
        by_module[model.get_submodule(path), kind] = change
    with changing(by_module):
        yield
