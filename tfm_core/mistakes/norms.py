"""One norm in the place of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def _without_norms(config: Any) -> str | None:
    if config.has_norms:
        return None
    return N_(
        "There is no norm for the sublayers to share: choose LayerNorm or RMSNorm, or leave out "
        "this mistake."
    )


SHARED_NORM = Mistake(
    name="shared-norm",
    label=N_("One LayerNorm shared by all sublayers of a block"),
    short=N_("one shared norm"),
    help=N_("All sublayers of a block share one norm’s scale and shift."),
    source="Vaswani et al. 2017, section 3.1, with one norm a block",
    place="block",
    right="self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)",
    wrong="self.norm = nn.LayerNorm(d_model)  # used after attention and after feed-forward",
    apply=_share,
    refusal=_without_norms,
    means=N_("One scale and shift had to serve all sublayers of a block."),
    probe="numbers",
)
