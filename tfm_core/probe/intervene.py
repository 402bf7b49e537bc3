"""Intervene: run a model with functions put in at its hook points; the model itself stays as it is.

    with intervene(model, {"decoder.layers.1.cross_attention.merged": zero}):
        model(src, tgt_in)

A hook point is called as in a capture, ``module name.kind``; its function gets the value and what
it was made from, and returns what goes on in its place. Interventions add up: the outer acts first,
and a capture inside keeps what goes on. Every stack computes all its tokens meanwhile, also where
nothing is changed. What can be changed, and what that is made from:

``input`` of a stack; its ``output``, from the input of its last norm; ``residual``, what leaves a
block, from what enters it; of a norm of a block ``normed`` and ``joined``, from what it norms,
``change``, the output of the sublayer, from its input, and ``skipped``, what is added to that, from
the block's vectors (None adds nothing); of an attention ``mask``, ``relative`` (queries, keys and
bias with relative positions, from those without), ``weights``, from the mask, ``merged``, the heads
side by side, and ``output``, from those; of a feed-forward ``output``, from its input; ``placed``,
from vectors without positions; of a recurrent model ``output`` of its attention, its bridge and the
``back`` of a reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import nn

from tfm_core.layers.recorder import CHANGEABLE, Change, changing


@contextmanager
def intervene(model: nn.Module, changes: Mapping[str, Change]) -> Iterator[None]:
    """Put functions in at hook points inside the block; see the module's docstring.

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
