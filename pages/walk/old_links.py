"""Links from before the steps of the walk had names: they hold a number, ``step=8``.

The numbers are those that the steps had then, in the full walk of each family. They never change:
a step that is new has no number here.
"""

from __future__ import annotations

from tfm_core.config import ModelConfig

_INTO = (
    "tokens", "heads", "masks", "embedding", "positions", "queries-keys-values", "split", "scores",
    "masking", "softmax", "weighted-sum", "merge", "add-norm", "feed-forward", "encoder-stack",
)  # fmt: skip
_BLOCK = (
    "queries-keys-values", "split", "scores", "softmax", "weighted-sum", "merge", "add-norm",
    "feed-forward", "encoder-stack",
)  # fmt: skip
_PATCHES = ("picture", "patches", "patch-projection")
_ANSWER = ("logits", "whole")

STEPS: dict[str, tuple[str, ...]] = {  # family -> steps, the first of which was number 1
    "encoder-decoder": (*_INTO, "decoder-attention", "cross-attention", *_ANSWER),
    "encoder-only": (*_INTO, "pooling", "", *_ANSWER),
    "decoder-only": (*_INTO, "", "", *_ANSWER),
    "vit": (*_PATCHES, "cls", "positions", *_BLOCK, "pooling", "head", "whole"),
    "recurrent": (
        "tokens", "embedding", "encoder", "bridge", "scores", "weights", "context", "writing",
        "whole",
    ),
    "captioner": (
        *_PATCHES, "positions", *_BLOCK, "tokens", "embedding", "word-positions", "masks",
        "decoder-attention", "cross-attention", "decoder-add-norm", "decoder-feed-forward",
        *_ANSWER,
    ),
}  # fmt: skip


def steps_of(config: ModelConfig) -> tuple[str, ...]:
    """Return the names of the steps that numbers stood for, from 1; "" where there was none."""
    return STEPS[config.family]
