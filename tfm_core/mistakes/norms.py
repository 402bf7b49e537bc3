"""One norm in the place of several."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tfm_core.mistakes.mistake import Mistake, blocks
from tfm_core.sentences import N_, Paragraph

if TYPE_CHECKING:
    from torch import nn


def _share(model: nn.Module) -> None:
    from tfm_core.mistakes.parts import SharedNorm

    for block in blocks(model):
        if block.cross_attention is not None:
            block.cross_attention_norm = SharedNorm(block.self_attention_norm)
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
    refusal=_without_norms,
    means=N_("All sublayers of a block had to share one scale and shift."),
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
    help=Paragraph("mistakes/dropout-after-norm-help"),
    source="Vaswani et al. 2017, section 5.4, with dropout applied to the output of the norm",
    place=None,
    right="x = self.norm(x + self.dropout(sublayer(x)))",
    wrong="x = self.dropout(self.norm(x + sublayer(x)))",
    apply=_drop_after,
    means=Paragraph("mistakes/dropout-after-norm-effect"),
    probe=None,
)


def _divide_by_sample_deviation(model: nn.Module) -> None:
    from torch import Tensor, nn

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
    help=Paragraph("mistakes/sample-deviation-help"),
    source="Ba et al. 2016, Eq. 3, with Bessel's correction",
    place=None,
    right="x = (x - x.mean(-1, True)) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt()",
    wrong="x = (x - x.mean(-1, True)) / (x.var(-1, keepdim=True) + eps).sqrt()",
    apply=_divide_by_sample_deviation,
    means=Paragraph("mistakes/sample-deviation-effect"),
    probe=None,
)
