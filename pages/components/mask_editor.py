"""Five linked maps of one masked attention; a click on the mask forbids or allows a pair.

Scores, mask, masked scores, weights, output: what is under the pointer lights up in all of them,
with its exact values. The browser keeps the clicked cells, so a quick hand loses none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from pages.components.component import component, is_index
from pages.i18n import _
from tfm_core.inspect.masks.lab import Array, MaskedAttention
from tfm_core.plots.heads.attention import DIVERGING, MASKED, SCALES

SheetCell = tuple[int, int]

_component = component("mask_editor", css=["mask_editor.css"], html='<div class="lab"></div>')


def mask_editor(
    flow: MaskedAttention,
    query_tokens: Collection[str],
    key_tokens: Collection[str],
    *,
    edited: Collection[SheetCell],
    version: str,
    on_edit: Callable[[tuple[SheetCell, ...]], None],
    key: str,
) -> None:
    """Draw the five maps; ``on_edit`` gets all clicked cells before the next rerun.

    flow: with the clicks in it. edited: the cells (query, key) turned over so far. version: names
    what they were clicked on; clicks on something older are dropped.
    """
    shape = flow.allowed.shape  # a session keeps what its callbacks hold

    def changed(value: object) -> None:
        cells = valid_edit(value, version, shape)
        if cells is not None:
            on_edit(cells)

    _component(
        pack(flow, query_tokens, key_tokens, edited=edited, version=version),
        on={"edit": changed},
        key=key,
    )


def pack(
    flow: MaskedAttention,
    query_tokens: Collection[str],
    key_tokens: Collection[str],
    *,
    edited: Collection[SheetCell],
    version: str,
) -> dict[str, Any]:
    return {
        "version": version,
        "query": list(query_tokens),
        "key": list(key_tokens),
        "edited": [list(cell) for cell in edited],
        "scores": _short(flow.scores),
        "mask": flow.allowed.tolist(),
        "weights": _short(flow.weights),
        "output": _short(flow.output),
        "colours": {
            theme: {"weight": SCALES[theme], "score": DIVERGING[theme], "masked": MASKED[theme]}
            for theme in ("light", "dark")
        },
        "words": _words(),
    }


def _short(values: Array) -> list[list[float]]:
    """Return values rounded to the shown digits and one more."""
    rounded: list[list[float]] = np.round(values.astype(np.float64), 7).tolist()
    return rounded


def valid_edit(value: object, version: str, shape: tuple[int, ...]) -> tuple[SheetCell, ...] | None:
    """Return the clicked cells from the browser, or None if invalid."""
    if not isinstance(value, dict) or value.get("version") != version:
        return None
    cells = value.get("cells")
    if not isinstance(cells, list) or len(cells) > shape[0] * shape[1]:
        return None
    edited: list[SheetCell] = []
    for cell in cells:
        if not is_index(cell, *shape):
            return None
        edited.append((cell[0], cell[1]))
    return tuple(dict.fromkeys(edited))


def _words() -> dict[str, str]:
    return {
        "scores": _("1 · Scores: query · key / √d"),
        "mask": _("2 · Mask: click to change"),
        "masked": _("3 · Masked scores; min: −3.4·10³⁸"),
        "weights": _("4 · Weights: softmax of each row"),
        "output": _("5 · Output: weights × values"),
        "grid": _("Mask. Arrow keys move, Enter or space toggles a pair."),
        "query": _("query"),
        "key": _("key"),
        "score": _("score"),
        "allowed": _("allowed"),
        "forbidden": _("forbidden"),
        "masked_score": _("masked score"),
        "lowest": _("lowest float32, −3.4·10³⁸"),
        "least": _("min"),  # as much of it as a cell holds
        "weight": _("weight"),
        "of_output": _("output"),
        "dimension": _("dimension"),
        "blind": _("nothing allowed: zeros"),
        "hint": _("Point at a cell: the same pair lights up everywhere."),
    }
