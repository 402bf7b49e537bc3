"""Famous mistakes in the code of a block, made on purpose on a copy of the user's own first block.

Each is laid beside the block as it should be: the same weights, the same real batch, so that every
number that differs is the mistake's.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.inspect.training_step.step import forward, gradients
from tfm_core.layers.blocks import Block, identity_skip
from tfm_core.mistakes import MISTAKES, make
from tfm_core.mistakes.parts import SharedNorm, SlicedProjection
from tfm_core.sentences import N_, StudentError
from tfm_core.training.loop import Trainer

Floats = npt.NDArray[np.float32]
SHOWN = 6  # numbers of the first token


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


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake: its title, the line as it should be, the line as it is written by mistake."""

    title: str
    right: str
    wrong: str
    make: Callable[[Trainer], WrongBlock]


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
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
    held = _first_block(trainer)
    _check_norms(held.block)
    if isinstance(held.block.feed_forward_norm, SharedNorm):
        raise StudentError("This model already has one norm for all sublayers.")
    twin = held.twin()
    make(["shared-norm"], twin)
    _loss, by_name = gradients(trainer)
    one, other = (
        by_name[f"{held.name}.{which}_norm.weight"] for which in ("self_attention", "feed_forward")
    )
    cosine = float(F.cosine_similarity(one.flatten(), other.flatten(), dim=0))
    fact = N_(
        "In this step the loss asks the two norms for different changes: the cosine of "
        "their gradients is {cosine:.2f}. A shared norm gets the sum of both and can "
        "follow neither.",
        cosine=cosine,
    )
    right, wrong = held.out(held.block), held.out(twin)
    if torch.equal(right, wrong):
        fact = N_(
            "These outputs are equal because every norm starts as scale 1 and shift 0; trained "
            "weights differ. {why}",
            why=fact,
        )
    return _compared(held.block, twin, right, wrong, fact)


def no_output_projection(trainer: Trainer) -> WrongBlock:
    """Leave out W_O: the heads lie side by side as they are."""
    held = _first_block(trainer)
    if isinstance(held.block.self_attention.out_projection, nn.Identity):
        raise StudentError("This model already has no output projection.")
    twin = held.twin()
    make(["no-output-projection"], twin)
    n_heads, d_model = twin.self_attention.n_heads, twin.self_attention.d_model
    fact = N_(
        "Without it each of the {n_heads} heads writes into its own {d_head} of "
        "{d_model} numbers, and nothing mixes what the heads found before it joins the "
        "residual.",
        n_heads=n_heads,
        d_head=d_model // n_heads,
        d_model=d_model,
    )
    return _compared(held.block, twin, held.out(held.block), held.out(twin), fact)


def residual_from_norm(trainer: Trainer) -> WrongBlock:
    """Add the sublayer to what the norm made of x, not to x: in the pre-norm arrangement."""
    held = _first_block(trainer)
    _check_norms(held.block)
    block = held.block
    if {block.attention_skip, block.feed_forward_skip} != {identity_skip}:
        raise StudentError(
            "This model’s residuals are not as they should be already, so there is nothing to "
            "compare: leave out that mistake."
        )
    x, twin = held.x, held.twin()
    twin.norm_first = True
    right = held.out(twin)
    make(["residual-from-normed"], twin)
    wrong = held.out(twin)
    arranged = N_("This model is pre-norm, as here.")
    if not held.block.norm_first:
        arranged = N_(
            "This model is post-norm, where the residual rightly is a normed value; here its "
            "weights stand in the pre-norm arrangement."
        )
    fact = N_(
        "The input, of mean length {length:.2f}, has the cosine {right:.2f} with the "
        "output if it is added as it is, and {wrong:.2f} with the mistake. {arranged}",
        length=float(x.norm(dim=-1).mean()),
        right=float(F.cosine_similarity(x, right, dim=-1).mean()),
        wrong=float(F.cosine_similarity(x, wrong, dim=-1).mean()),
        arranged=arranged,
    )
    return _compared(held.block, held.block, right, wrong, fact)


def heads_on_slices(trainer: Trainer) -> WrongBlock:
    """Give each head maps of d_head x d_head on its own slice of the embedding."""
    held = _first_block(trainer)
    twin = held.twin()
    attention = twin.self_attention
    n_heads, d_model = attention.n_heads, attention.d_model
    if n_heads == 1:
        raise StudentError(
            "This model has one head, whose slice is the whole embedding: the mistake needs two."
        )
    if not isinstance(attention.in_projection, nn.Linear):
        raise StudentError("This model already has its heads on slices.")
    d_head = d_model // n_heads
    sliced = SlicedProjection(attention.in_projection, n_heads)
    attention.in_projection = sliced  # type: ignore[assignment] # it has weight and bias
    fact = N_(
        "Each head reads {d_head} of {d_model} numbers of a token, in {n_heads} maps of "
        "{d_head} × {d_head}, for query, key and value each, instead of one of "
        "{d_model} × {d_model}.",
        d_head=d_head,
        d_model=d_model,
        n_heads=n_heads,
    )
    return _compared(held.block, twin, held.out(held.block), held.out(twin), fact)


BLOCK_MISTAKES: dict[str, Mistake] = {
    "shared-norm": Mistake(
        MISTAKES["shared-norm"].label,
        "self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)",
        "self.norm = nn.LayerNorm(d_model)  # used after attention and after feed-forward",
        shared_norm,
    ),
    "no-output": Mistake(
        MISTAKES["no-output-projection"].label,
        "return self.W_O(heads.transpose(1, 2).reshape(B, T, d_model))",
        "return heads.transpose(1, 2).reshape(B, T, d_model)",
        no_output_projection,
    ),
    "normed-residual": Mistake(
        MISTAKES["residual-from-normed"].label,
        "x = x + self.mlp(self.norm2(x))",
        "x = self.norm2(x)\nx = x + self.mlp(x)  # x is gone: the norm is added",
        residual_from_norm,
    ),
    "slices": Mistake(
        MISTAKES["sliced-heads"].label,
        "q = self.W_Q(x).view(B, T, n_heads, d_head)  # W_Q: d_model x d_model",
        "q = self.W_Q[h](x[:, :, h * d_head : (h + 1) * d_head])  # W_Q[h]: d_head x d_head",
        heads_on_slices,
    ),
}


@dataclass(frozen=True, slots=True)
class FourAxes:
    """What ``mm`` says to queries and keys of four axes, and the shape that ``@`` gives."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    error: str
    scores: tuple[int, ...]


def mm_on_four_axes(trainer: Trainer) -> FourAxes:
    """Multiply the block's own queries with its own keys by ``torch.mm``, then by ``@``."""
    held = _first_block(trainer)
    with torch.no_grad():
        q, k, _v = held.block.self_attention.project(held.x)
    turned = k.transpose(-2, -1)
    try:
        torch.mm(q, turned)
    except RuntimeError as error:
        scores = tuple((q @ turned).shape)
        return FourAxes(tuple(q.shape), tuple(turned.shape), str(error), scores)
    raise AssertionError("mm takes matrices alone")


def _first_block(trainer: Trainer) -> _Held:
    """Return the model's first block, and what the next batch gives it, without dropout."""
    named = ((name, one) for name, one in trainer.model.named_modules() if isinstance(one, Block))
    name, block = next(named, ("", None))
    if block is None:
        raise StudentError("This model has no Transformer blocks, so it cannot make this mistake.")
    seen: list[tuple[Tensor, dict[str, Any]]] = []

    def keep(_module: nn.Module, given: tuple[Any, ...], others: dict[str, Any]) -> None:
        seen.append((given[0].detach(), others))

    was_training = trainer.model.training
    handle = block.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        trainer.model.eval()
        with torch.no_grad():
            forward(trainer)
    finally:
        handle.remove()
        trainer.model.train(was_training)
    if not seen:  # the last block of a CLS model answers for one token, by another way
        raise StudentError("This model's only block answers for one token; take two layers.")
    x, others = seen[0]
    return _Held(name, copy.deepcopy(block).eval(), x, others)


def _check_norms(block: Block) -> None:
    """Raise StudentError where a mistake with norms cannot be made."""
    if isinstance(block.self_attention_norm, nn.Identity):
        raise StudentError("This model has no norms, so it cannot make a mistake with them.")


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
