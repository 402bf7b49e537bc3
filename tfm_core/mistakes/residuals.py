"""Residual connections that are missing, or begin behind the norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfm_core.mistakes.mistake import Mistake, blocks
from tfm_core.sentences import N_
from tfm_core.variants.forms import ATTENTION, FEED_FORWARD, Residual

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


def _without_pre_norm(config: Any) -> str | None:
    if config.has_norms and config.norm_first:
        return None
    if config.has_norms:
        return N_(
            "Only pre-norm blocks can take the residual from the normalised value: switch Pre-norm "
            "on, or leave out this mistake."
        )
    return N_(
        "Nothing is normalised, so no residual can come from a normalised value: choose LayerNorm "
        "or RMSNorm, or leave out this mistake."
    )


_NONE = Residual(
    name="none",
    source="Vaswani et al. 2017, section 3.1, without the sum",
    has_sum=False,
    normed=frozenset(),
)
_FROM_NORMED = Residual(
    name="from-normed",
    source="Xiong et al. 2020, with x overwritten by norm(x)",
    has_sum=True,
    normed=frozenset((ATTENTION, FEED_FORWARD)),
)
_FEED_FORWARD_FROM_NORMED = Residual(
    name="feed-forward-from-normed",
    source="Xiong et al. 2020, with x overwritten by norm(x) before the feed-forward layer",
    has_sum=True,
    normed=frozenset((FEED_FORWARD,)),
)

NO_RESIDUALS = Mistake(
    name="no-residuals",
    label=N_("No residual connections"),
    short=N_("no residuals"),
    help=N_(
        "A sublayer's output replaces its input, so a token keeps nothing of itself that attention "
        "or the feed-forward layer does not pass on."
    ),
    source=_NONE.source,
    place="block",
    apply=_leave_out,
    form=_NONE,
    means=N_("Each sublayer's output took the place of its input, and nothing runs past it."),
    probe="growth",
)
RESIDUAL_FROM_NORMED = Mistake(
    name="residual-from-normed",
    label=N_("The residual taken from the normalised value"),
    short=N_("residual from norm(x)"),
    help=N_(
        "x = norm(x) and then x + sublayer(x): the sum begins anew at each sublayer, and no path "
        "runs through the stack untouched. A mistake of pre-norm blocks."
    ),
    source=_FROM_NORMED.source,
    place="block",
    right="x = x + self.mlp(self.norm2(x))",
    wrong="x = self.norm2(x)\nx = x + self.mlp(x)  # x is gone: the norm is added",
    apply=_overwrite,
    form=_FROM_NORMED,
    refusal=_without_pre_norm,
    means=N_("x = norm(x) came before the sum, so the sum began anew at each sublayer."),
    probe="growth",
)
FEED_FORWARD_RESIDUAL_FROM_NORMED = Mistake(
    name="feed-forward-residual-from-normed",
    label=N_("The feed-forward layer's residual taken from the normalised value"),
    short=N_("second residual from norm(x)"),
    help=N_(
        "The attention's output is added to x, as it should be; the feed-forward layer's is added "
        "to norm(x), so the sum begins anew once a block. A mistake of pre-norm blocks."
    ),
    source=_FEED_FORWARD_FROM_NORMED.source,
    place="block",
    right="x = x + self.attention(self.norm1(x))\nx = x + self.mlp(self.norm2(x))",
    wrong="x = x + self.attention(self.norm1(x))\nx = self.norm2(x)\nx = x + self.mlp(x)",
    apply=_overwrite_before_feed_forward,
    form=_FEED_FORWARD_FROM_NORMED,
    refusal=_without_pre_norm,
    means=N_("x = norm(x) came before the feed-forward layer, so the sum began anew once a block."),
    probe="growth",
)
