"""Famous mistakes in the code of a block, made on purpose on a copy of the user's own first block.

Each is laid beside the block as it should be: the same weights, the same real batch, so that every
number that differs is the mistake's.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.config import BlockConfig
from tfm_core.inspect.training_step.mistakes import BORROWED_DROPOUT
from tfm_core.inspect.training_step.step import (
    clip_scale,
    copied,
    forward,
    gradients,
    scheduled_rate,
    update,
)
from tfm_core.layers.blocks import Block, identity_skip
from tfm_core.mistakes import MISTAKES, make
from tfm_core.mistakes.parts import SharedNorm, SlicedProjection
from tfm_core.sentences import N_, Paragraph, StudentError, joined
from tfm_core.training.loop import Trainer

Floats = npt.NDArray[np.float32]
SHOWN = 6  # numbers of the first token
N_STEPS = 30
"""Steps that a model with and one without a mistake are trained to be compared."""


@dataclass(frozen=True, slots=True, eq=False)
class WrongBlock:
    """A block as it should be and as the mistake makes it.

    n_right, n_wrong: their parameters. right, wrong: the first numbers of what comes out for the
    first token of the batch. apart: the largest difference of any number; spread: the standard
    deviation of the right output, to measure it by. fact: what else was measured, in words.
    """

    n_right: int
    n_wrong: int
    right: Floats
    wrong: Floats
    apart: float
    spread: float
    fact: str


@dataclass(frozen=True, slots=True, eq=False)
class _FirstBlock:
    """The first block of a model with what the next batch gives it."""

    name: str
    block: Block
    x: Tensor
    others: dict[str, Any]

    def out(self, block: nn.Module) -> Tensor:
        """Return what a block makes of the batch, (B, T, d_model)."""
        with torch.no_grad():
            made: Tensor = block(self.x, **self.others)
        return made

    def twin(self) -> Block:
        """Return a copy of the block, to be spoilt."""
        return copy.deepcopy(self.block)


def shared_norm(trainer: Trainer) -> WrongBlock:
    """Use one LayerNorm behind or before every sublayer."""
    first = _first_block(trainer)
    _check_norms(first.block)
    if isinstance(first.block.feed_forward_norm, SharedNorm):
        raise StudentError("This model already shares one norm.")
    twin = first.twin()
    make(["shared-norm"], twin)
    _loss, by_name = gradients(trainer)
    one, other = (
        by_name[f"{first.name}.{which}_norm.weight"] for which in ("self_attention", "feed_forward")
    )
    cosine = float(F.cosine_similarity(one.flatten(), other.flatten(), dim=0))
    fact = Paragraph("training_step/shared-norm", cosine=cosine)
    right, wrong = first.out(first.block), first.out(twin)
    if torch.equal(right, wrong):
        equal = N_("Equal outputs: every norm starts with scale 1 and shift 0.")
        return _compared(first.block, twin, right, wrong, joined(equal, fact))
    return _compared(first.block, twin, right, wrong, fact)


def no_output_projection(trainer: Trainer) -> WrongBlock:
    """Leave out W_O: the heads lie side by side as they are."""
    first = _first_block(trainer)
    if isinstance(first.block.self_attention.out_projection, nn.Identity):
        raise StudentError("This model already has no output projection.")
    twin = first.twin()
    attention = twin.self_attention
    if attention.widths[0] != attention.d_model:
        raise StudentError(Paragraph("training_step/own-width"))
    make(["no-output-projection"], twin)
    fact = Paragraph(
        "training_step/no-output",
        n_heads=attention.n_heads,
        d_head=attention.d_head,
        d_model=attention.d_model,
    )
    return _compared(first.block, twin, first.out(first.block), first.out(twin), fact)


def residual_from_norm(trainer: Trainer) -> WrongBlock:
    """Add the sublayer to what the norm made of x, not to x: in the pre-norm arrangement."""
    first = _first_block(trainer)
    _check_norms(first.block)
    block = first.block
    if {block.attention_skip, block.feed_forward_skip} != {identity_skip}:
        raise StudentError(
            "This model already has a mistake in its residuals: remove it to compare."
        )
    x, twin = first.x, first.twin()
    twin.norm_first = True
    right = first.out(twin)
    make(["residual-from-normed"], twin)
    wrong = first.out(twin)
    arranged = N_("This model is pre-norm, as here.")
    if not first.block.norm_first:
        arranged = N_("This model is post-norm; here the same weights run in pre-norm order.")
    cosines = Paragraph(
        "training_step/residual",
        length=float(x.norm(dim=-1).mean()),
        right=float(F.cosine_similarity(x, right, dim=-1).mean()),
        wrong=float(F.cosine_similarity(x, wrong, dim=-1).mean()),
    )
    return _compared(first.block, first.block, right, wrong, joined(cosines, arranged))


def heads_on_slices(trainer: Trainer) -> WrongBlock:
    """Give each head maps of d_head x d_head on its own slice of the embedding."""
    first = _first_block(trainer)
    twin = first.twin()
    attention = twin.self_attention
    n_heads, d_model = attention.n_heads, attention.d_model
    if n_heads == 1:
        raise StudentError("This model has one head; the mistake needs two.")
    if attention.n_kv_heads < n_heads:
        raise StudentError("This model’s heads share keys and values; the mistake needs their own.")
    if not isinstance(attention.in_projection, nn.Linear):
        raise StudentError("This model’s heads already read slices.")
    if attention.widths[0] != d_model:
        raise StudentError(Paragraph("training_step/own-width"))
    d_head = attention.d_head
    sliced = SlicedProjection(attention.in_projection, n_heads)
    attention.in_projection = sliced  # type: ignore[assignment] # it has weight and bias
    fact = Paragraph("training_step/slices", d_head=d_head, d_model=d_model, n_heads=n_heads)
    return _compared(first.block, twin, first.out(first.block), first.out(twin), fact)


BLOCK_MISTAKES: dict[str, Callable[[Trainer], WrongBlock]] = {
    "shared-norm": shared_norm,
    "no-output-projection": no_output_projection,
    "residual-from-normed": residual_from_norm,
    "sliced-heads": heads_on_slices,
}
"""Mistakes of ``tfm_core.mistakes`` that are shown on a block, and what shows them."""
MODEL_MISTAKES = tuple(
    name
    for name, one in MISTAKES.items()
    if one.apply is not None and one.wrong is not None and name not in BLOCK_MISTAKES
)
"""Those that are shown on the whole model."""


@dataclass(frozen=True, slots=True)
class WrongModel:
    """Losses of the next batch with the model as it should be and with a mistake in it.

    dropout: what each block drops in training, borrowed where the model drops nothing. error: of
    a model that crashes with the mistake; its losses are not a number.
    """

    right: float = math.nan
    wrong: float = math.nan
    right_in_training: float = math.nan
    wrong_in_training: float = math.nan
    dropout: float = math.nan
    error: str = ""


def in_model(trainer: Trainer, name: str) -> WrongModel:
    """Make a mistake in a copy of the model, and run the next batch through both.

    The two draw the same dropout. Raises StudentError where the mistake has no place in the model.
    """
    right, wrong, share = _twins(trainer, name)
    try:
        return WrongModel(
            right=_loss(right, is_training=False),
            wrong=_loss(wrong, is_training=False),
            right_in_training=_loss(right, is_training=True),
            wrong_in_training=_loss(wrong, is_training=True),
            dropout=share,
        )
    except RuntimeError as error:
        return WrongModel(error=str(error))


def trained_apart(trainer: Trainer, name: str) -> tuple[float, float]:
    """Train a copy of the model as it should be and one with a mistake, on the same batches.

    Returns the losses of both on the batch that follows. Raises as ``in_model`` does.
    """
    losses = []
    for twin in _twins(trainer, name)[:2]:
        twin.model.train()
        for _ in range(N_STEPS):
            _before, by_name = gradients(twin)
            _norm, scale = clip_scale(by_name, twin.experiment.training.clip_norm)
            update(twin, by_name, scheduled_rate(twin), scale)
            twin.step += 1
        losses.append(_loss(twin, is_training=False))
    return losses[0], losses[1]


def _twins(trainer: Trainer, name: str) -> tuple[Trainer, Trainer, float]:
    """Return a copy of the model as it should be, one with a mistake, and what both drop."""
    config = trainer.experiment.model
    if name in getattr(config, "mistakes", ()):
        raise StudentError("This model already makes this mistake.")
    refusal = MISTAKES[name].refusal
    sentence = refusal(config) if refusal is not None and isinstance(config, BlockConfig) else None
    if sentence is not None:
        raise StudentError(sentence)
    right = copied(trainer)
    drops = [part for part in right.model.modules() if isinstance(part, nn.Dropout)]
    share = max((part.p for part in drops), default=0.0)
    if not share:
        share = BORROWED_DROPOUT
        for part in drops:
            part.p = share
    wrong = copied(right)
    try:
        make([name], wrong.model)
    except ValueError:
        raise StudentError(
            "The mistake “{mistake}” does not apply to this model.", mistake=MISTAKES[name].label
        ) from None
    return right, wrong, share


@torch.no_grad()
def _loss(trainer: Trainer, *, is_training: bool) -> float:
    """Return the loss of the next batch."""
    trainer.model.train(is_training)
    return float(forward(trainer).loss)


@dataclass(frozen=True, slots=True)
class FourAxes:
    """What ``mm`` says to queries and keys of four axes, and the shape that ``@`` gives."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    error: str
    scores: tuple[int, ...]


def mm_on_four_axes(trainer: Trainer) -> FourAxes:
    """Multiply the block's own queries with its own keys by ``torch.mm``, then by ``@``."""
    first = _first_block(trainer)
    with torch.no_grad():
        q, k, _v = first.block.self_attention.project(first.x)
    turned = k.transpose(-2, -1)
    try:
        torch.mm(q, turned)
    except RuntimeError as error:
        scores = tuple((q @ turned).shape)
        return FourAxes(tuple(q.shape), tuple(turned.shape), str(error), scores)
    raise AssertionError("mm takes only matrices")


def _first_block(trainer: Trainer) -> _FirstBlock:
    """Return the model's first block, and what the next batch gives it, without dropout."""
    named = ((name, one) for name, one in trainer.model.named_modules() if isinstance(one, Block))
    name, block = next(named, ("", None))
    if block is None:
        raise StudentError("This model has no Transformer blocks for this mistake.")
    seen: list[tuple[Tensor, dict[str, Any]]] = []

    def keep(_module: nn.Module, given: tuple[Any, ...], others: dict[str, Any]) -> None:
        seen.append((given[0].detach(), others))

    was_training = trainer.model.training
    trainer.model.eval()
    try:
        with block.register_forward_pre_hook(keep, with_kwargs=True), torch.no_grad():
            forward(trainer)
    finally:
        trainer.model.train(was_training)
    if not seen:  # the last block of a CLS model answers for one token, by another way
        raise StudentError("The only block answers for one token; choose two layers.")
    x, others = seen[0]
    return _FirstBlock(name, copy.deepcopy(block).eval(), x, others)


def _check_norms(block: Block) -> None:
    """Raise StudentError where a mistake with norms cannot be made."""
    if isinstance(block.self_attention_norm, nn.Identity):
        raise StudentError("This model has no norms.")


def _compared(
    block: nn.Module, twin: nn.Module, right: Tensor, wrong: Tensor, fact: str
) -> WrongBlock:
    return WrongBlock(
        _count(block),
        _count(twin),
        right[0, 0, :SHOWN].numpy(),
        wrong[0, 0, :SHOWN].numpy(),
        float((right - wrong).abs().max()),
        float(right.std()),
        fact,
    )


def _count(module: nn.Module) -> int:
    return sum(one.numel() for one in module.parameters())
