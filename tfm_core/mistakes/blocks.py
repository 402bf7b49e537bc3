"""Mistakes in a block: residual connections, norms and dropout."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tfm_core.mistakes.mistake import Mistake, blocks
from tfm_core.sentences import N_, Paragraph
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
        return Paragraph("mistakes/residual-needs-pre-norm")
    return Paragraph("mistakes/residual-needs-norm")


def _without_feed_forward(config: Any) -> str | None:
    if config.has_feed_forward:
        return None
    return N_("This mistake needs a feed-forward layer: choose d_ff above 0.")


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
    help=Paragraph("mistakes/no-residuals"),
    source=_NONE.source,
    place="block",
    apply=_leave_out,
    form=_NONE,
    probe="growth",
)
RESIDUAL_FROM_NORMED = Mistake(
    name="residual-from-normed",
    label=N_("Residual taken from the normalised value"),
    short=N_("residual from norm(x)"),
    help=Paragraph("mistakes/residual-from-normed"),
    source=_FROM_NORMED.source,
    place="block",
    right="x = x + self.mlp(self.norm2(x))",
    wrong="x = self.norm2(x)\nx = x + self.mlp(x)  # x is gone: the norm is added",
    apply=_overwrite,
    form=_FROM_NORMED,
    refusal=_without_pre_norm,
    probe="growth",
)
FEED_FORWARD_RESIDUAL_FROM_NORMED = Mistake(
    name="feed-forward-residual-from-normed",
    label=N_("Feed-forward residual taken from the normalised value"),
    short=N_("second residual from norm(x)"),
    help=Paragraph("mistakes/feed-forward-residual-from-normed"),
    source=_FEED_FORWARD_FROM_NORMED.source,
    place="block",
    right="x = x + self.attention(self.norm1(x))\nx = x + self.mlp(self.norm2(x))",
    wrong="x = x + self.attention(self.norm1(x))\nx = self.norm2(x)\nx = x + self.mlp(x)",
    apply=_overwrite_before_feed_forward,
    form=_FEED_FORWARD_FROM_NORMED,
    refusal=lambda config: _without_feed_forward(config) or _without_pre_norm(config),
    probe="growth",
)


def _share(model: nn.Module) -> None:
    from tfm_core.mistakes.parts import SharedNorm

    for block in blocks(model):
        if block.cross_attention is not None:
            block.cross_attention_norm = SharedNorm(block.self_attention_norm)
        if block.feed_forward is not None:
            block.feed_forward_norm = SharedNorm(block.self_attention_norm)


def _without_norms(config: Any) -> str | None:
    if config.has_norms:
        return None
    return Paragraph("mistakes/shared-norm-needs-norm")


SHARED_NORM = Mistake(
    name="shared-norm",
    label=N_("One LayerNorm for all sublayers of a block"),
    short=N_("one shared norm"),
    help=N_("All sublayers of a block share one scale and shift."),
    source="Vaswani et al. 2017, section 3.1, with one norm a block",
    place="block",
    right="self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)",
    wrong="self.norm = nn.LayerNorm(d_model)  # used after attention and after feed-forward",
    apply=_share,
    refusal=lambda config: _without_feed_forward(config) or _without_norms(config),
    probe="numbers",
)


def _drop_after(model: nn.Module) -> None:
    from tfm_core.mistakes.parts import dropped

    for block in blocks(model):
        share, block.dropout.p = block.dropout.p, 0.0
        if share:  # else it was moved already, or there is none
            norms = (part for name, part in block.named_children() if name.endswith("_norm"))
            for norm in norms:
                norm.register_forward_hook(partial(dropped, share))


DROPOUT_AFTER_NORM = Mistake(
    name="dropout-after-norm",
    label=N_("Dropout after the norm"),
    short=N_("dropout after the norm"),
    help=Paragraph("mistakes/dropout-after-norm"),
    source="Vaswani et al. 2017, section 5.4, with dropout applied to the output of the norm",
    place=None,
    right="x = self.norm(x + self.dropout(sublayer(x)))",
    wrong="x = self.dropout(self.norm(x + sublayer(x)))",
    apply=_drop_after,
    probe=None,
)


def _divide_by_sample_deviation(model: nn.Module) -> None:
    from torch import nn

    def normed(norm: nn.LayerNorm, x: Tensor) -> Tensor:
        scaled = (x - x.mean(-1, keepdim=True)) * (x.var(-1, keepdim=True) + norm.eps).rsqrt()
        return scaled * norm.weight + norm.bias

    norms = [part for part in model.modules() if isinstance(part, nn.LayerNorm)]
    if not norms:
        raise ValueError(f"A {type(model).__name__} has no LayerNorm.")
    for norm in norms:
        norm.forward = partial(normed, norm)  # type: ignore[method-assign]


SAMPLE_DEVIATION = Mistake(
    name="sample-deviation",
    label=N_("LayerNorm that divides the variance by n - 1"),
    short=N_("variance over n - 1"),
    help=Paragraph("mistakes/sample-deviation"),
    source="Ba et al. 2016, Eq. 3, with Bessel's correction",
    place=None,
    right="x = (x - x.mean(-1, True)) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt()",
    wrong="x = (x - x.mean(-1, True)) / (x.var(-1, keepdim=True) + eps).sqrt()",
    apply=_divide_by_sample_deviation,
    probe=None,
)
