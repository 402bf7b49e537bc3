"""One norm in the place of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfm_core.mistakes.mistake import Mistake, blocks
from tfm_core.sentences import N_

if TYPE_CHECKING:
    from torch import nn


def _share(model: nn.Module) -> None:
    from tfm_core.mistakes.parts import SharedNorm

    for block in blocks(model):
        if block.cross_attention is not None:
            block.cross_attention_norm = SharedNorm(block.self_attention_norm)
        block.feed_forward_norm = SharedNorm(block.self_attention_norm)


SHARED_NORM = Mistake(
    name="shared-norm",
    label=N_("One LayerNorm shared by all sublayers of a block"),
    help=N_("All sublayers of a block share one norm’s scale and shift: a mistake worth seeing."),
    source="Vaswani et al. 2017, section 3.1, with one norm a block",
    settings={"model.shared_norm": True},
    apply=_share,
    changes_attention_weights=False,
    means=N_("One scale and shift had to serve all sublayers of a block."),
    probe="numbers",
)
