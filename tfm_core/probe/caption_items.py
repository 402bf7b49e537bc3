"""Captioned pictures as examples to look into: the words, and where what they name truly stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tfm_core.config import CaptionTaskConfig
from tfm_core.config.shape import patches_per_side
from tfm_core.data.caption_words import Caption, join
from tfm_core.data.scenes import CANVAS, covered
from tfm_core.probe.labels import patch_names

if TYPE_CHECKING:
    from tfm_core.data.captions import CaptionSplit

Box = Sequence[int]


def items_of(
    config: CaptionTaskConfig, split: CaptionSplit, rows: Sequence[int], patch_size: int
) -> list[dict[str, Any]]:
    """Return some pictures of a split as items of a probe; see ``item_of``."""
    import torch

    from tfm_core.data.compose import ink_boxes

    chosen = torch.tensor(list(rows), device=split.chosen.device)
    boxes = ink_boxes(split.digits_of(chosen), split.squares[chosen]).tolist()
    return [
        item_of(config, split.captions[row], of_row, patch_size)
        for row, of_row in zip(rows, boxes, strict=True)
    ]


def item_of(
    config: CaptionTaskConfig, caption: Caption, boxes: Sequence[Box], patch_size: int
) -> dict[str, Any]:
    """Return a captioned picture as an item of a probe.

    boxes: left, top, right, bottom in pixels of the ink of each digit of the scene, the last two
    behind it. The item holds ``src``, the names of the patches, ``tgt`` words, ``tgt_text``, and
    for each word ``boxes``, the box of the digit that it names, or None, and ``alignment``, the
    patches that this box touches.
    """
    named = [None if digit is None else list(boxes[digit]) for digit in caption.names]
    return {
        "src": list(patch_names(patches_per_side(CANVAS, patch_size))),
        "tgt": list(caption.words),
        "tgt_text": join(caption.words, config),
        "boxes": named,
        "alignment": [[] if box is None else covered(box, patch_size) for box in named],
    }
