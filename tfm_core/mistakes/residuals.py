"""Residual connections that are missing, or begin behind the norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake, blocks
from tfm_core.sentences import N_
from tfm_core.variants.residuals import RESIDUALS

if TYPE_CHECKING:
    from torch import Tensor, nn


def skip_nothing(x: Tensor, normed: Tensor) -> Tensor | None:
    """Add nothing to a sublayer's output."""
    return None


def skip_from_normed(x: Tensor, normed: Tensor) -> Tensor | None:
    """Add norm(x), which the sublayer read, in the place of x."""
    return normed


def _leave_out(model: nn.Module) -> None:
    for block in blocks(model):
        block.attention_skip = block.feed_forward_skip = skip_nothing


def _overwrite(model: nn.Module) -> None:
    for block in blocks(model):
        block.attention_skip = block.feed_forward_skip = skip_from_normed


def _overwrite_before_feed_forward(model: nn.Module) -> None:
    for block in blocks(model):
        block.feed_forward_skip = skip_from_normed


NO_RESIDUALS = Mistake(
    name="no-residuals",
    label=N_("No residual connections"),
    help=RESIDUALS["none"].help,
    source=RESIDUALS["none"].source,
    settings={"model.residual": "none"},
    apply=_leave_out,
    changes_attention_weights=False,
    means=N_("Each sublayer's output took the place of its input, and nothing runs past it."),
    probe="growth",
)
RESIDUAL_FROM_NORMED = Mistake(
    name="residual-from-normed",
    label=N_("The residual taken from the normalised value"),
    help=RESIDUALS["from-normed"].help,
    source=RESIDUALS["from-normed"].source,
    settings={"model.residual": "from-normed"},
    apply=_overwrite,
    changes_attention_weights=False,
    means=N_("x = norm(x) came before the sum, so the sum began anew at each sublayer."),
    probe="growth",
)
FEED_FORWARD_RESIDUAL_FROM_NORMED = Mistake(
    name="feed-forward-residual-from-normed",
    label=N_("The feed-forward layer's residual taken from the normalised value"),
    help=RESIDUALS["feed-forward-from-normed"].help,
    source=RESIDUALS["feed-forward-from-normed"].source,
    settings={"model.residual": "feed-forward-from-normed"},
    apply=_overwrite_before_feed_forward,
    changes_attention_weights=False,
    means=N_("x = norm(x) came before the feed-forward layer, so the sum began anew once a block."),
    probe="growth",
)
