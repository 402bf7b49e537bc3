"""Mistakes in a block: residual connections, norms and dropout."""

from __future__ import annotations

from typing import Any

from tfm_core.mistakes.mistake import Mistake
from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.forms import ATTENTION, FEED_FORWARD, Residual


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
    apply="tfm_core.mistakes.parts:leave_out_residuals",
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
    apply="tfm_core.mistakes.parts:add_normed",
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
    apply="tfm_core.mistakes.parts:add_normed_before_feed_forward",
    form=_FEED_FORWARD_FROM_NORMED,
    refusal=lambda config: _without_feed_forward(config) or _without_pre_norm(config),
    probe="growth",
)


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
    apply="tfm_core.mistakes.parts:share_norms",
    refusal=lambda config: _without_feed_forward(config) or _without_norms(config),
    probe="numbers",
)


DROPOUT_AFTER_NORM = Mistake(
    name="dropout-after-norm",
    label=N_("Dropout after the norm"),
    short=N_("dropout after the norm"),
    help=Paragraph("mistakes/dropout-after-norm"),
    source="Vaswani et al. 2017, section 5.4, with dropout applied to the output of the norm",
    place=None,
    right="x = self.norm(x + self.dropout(sublayer(x)))",
    wrong="x = self.dropout(self.norm(x + sublayer(x)))",
    apply="tfm_core.mistakes.parts:drop_after_norms",
    probe=None,
)


SAMPLE_DEVIATION = Mistake(
    name="sample-deviation",
    label=N_("LayerNorm that divides the variance by n - 1"),
    short=N_("variance over n - 1"),
    help=Paragraph("mistakes/sample-deviation"),
    source="Ba et al. 2016, Eq. 3, with Bessel's correction",
    place=None,
    right="x = (x - x.mean(-1, True)) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt()",
    wrong="x = (x - x.mean(-1, True)) / (x.var(-1, keepdim=True) + eps).sqrt()",
    apply="tfm_core.mistakes.parts:divide_by_sample_deviation",
    probe=None,
)
