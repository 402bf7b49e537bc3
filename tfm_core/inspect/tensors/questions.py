"""Questions about the result of an operation, answered by PyTorch on that result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.tensors.operations import tupled
from tfm_core.inspect.tensors.sight import TensorView
from tfm_core.sentences import N_

if TYPE_CHECKING:
    from torch import Tensor


def about_strides(y: TensorView) -> Question | None:
    """Ask for the strides after an exchange of the first and last axis; None with fewer than two.

    Also None where all answers are the same.
    """
    if len(y.shape) < 2:
        return None
    swapped = _again(y).transpose(0, -1)
    dense = tuple(swapped.contiguous().stride())
    answer = tupled(tuple(swapped.stride()))
    wrong = {
        tupled(dense): N_("That needs a copy in the new order; transpose moves nothing."),
        tupled(tuple(y.strides)): N_("Those are y's own: two axes change places."),
        tupled(tuple(swapped.shape)): N_("That is the new shape."),
    }
    if not set(wrong) - {answer}:
        return None
    return choice_question(
        N_("What are the strides of `y.transpose(0, -1)`?"),
        answer,
        wrong,
        N_("The first and last stride change places, and no number moves."),
    )


def about_view(y: TensorView) -> Question | None:
    """Ask whether the exchanged tensor can be viewed as one row; None without two axes."""
    if len(y.shape) < 2:
        return None
    swapped = _again(y).transpose(0, -1)
    try:
        swapped.view(-1)
        works = True
    except RuntimeError:
        works = False
    yes, no = N_("Yes, without a copy"), N_("No, PyTorch refuses")
    because = (
        N_("Reading it in order still walks the memory with one stride.")
        if works
        else N_("No single stride reads it in order. `reshape` would copy.")
    )
    return choice_question(
        N_("Does `y.transpose(0, -1).view(-1)` work?"),
        yes if works else no,
        {
            yes: N_("One row needs one stride, and here the next number is not at a fixed step."),
            no: N_("An axis of size 1 or memory in the right order leaves one stride."),
        },
        because,
    )


def _again(y: TensorView) -> Tensor:
    """Return a tensor with y's sizes and strides, on memory of its own."""
    import torch

    return torch.arange(len(y.storage)).as_strided(y.shape, y.strides, y.offset)
