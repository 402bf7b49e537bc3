"""All heads of one attention at a glance: layers down, heads across, a click picks one.

The weights travel as raw bytes behind a short JSON header and are drawn on canvases, because 48
plotly maps take two seconds to appear. What is under the pointer is read from the same bytes, so it
is exact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.ui.words import _
from tfm_core.plots.attention import MASKED, SCALES
from tfm_core.plots.palette import ThemeName

MAX_VALUES = 1_000_000  # weights sent at most; beyond that the largest of each block stands for it

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "head_grid",
    html='<div class="heads"></div>',
    css=(_HERE / "head_grid.css").read_text(encoding="utf-8"),
    js=(_HERE / "head_grid.js").read_text(encoding="utf-8"),
)


def head_grid(
    weights: npt.NDArray[Any],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    chosen: tuple[int, int],
    on_pick: Callable[[int, int], None],
    theme: ThemeName,
    key: str,
    may_attend: npt.NDArray[np.bool_] | None = None,
    top: float | None = 1.0,
) -> None:
    """Show every head; ``on_pick(layer, head)``, both from 0, is called before the next run.

    weights: (L, H, Q, K), float16 or float32. may_attend: bool (Q, K), True = may attend; the rest
    is grey. top: the weight with the most ink; None takes the largest of each head.
    """
    n_layers, n_heads = weights.shape[:2]

    def picked() -> None:
        place = valid_place(st.session_state[key].get("pick"), n_layers, n_heads)
        if place is not None:
            on_pick(*place)

    _component(
        data=pack(
            weights,
            query_tokens,
            key_tokens,
            chosen=chosen,
            theme=theme,
            may_attend=may_attend,
            top=top,
        ),
        on_pick_change=picked,
        key=key,
    )


def pack(
    weights: npt.NDArray[Any],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    chosen: tuple[int, int],
    theme: ThemeName,
    may_attend: npt.NDArray[np.bool_] | None = None,
    top: float | None = 1.0,
) -> bytes:
    """Return what the browser gets: header length (uint32), JSON header, weights (L, H, Q, K).

    Numbers are little-endian; a masked weight is NaN. Raises ValueError when tokens do not fit.
    """
    if weights.shape[2:] != (len(query_tokens), len(key_tokens)):
        raise ValueError(
            f"The maps are {weights.shape[2]} by {weights.shape[3]}, but there are "
            f"{len(query_tokens)} query and {len(key_tokens)} key tokens."
        )
    if may_attend is not None:
        weights = np.where(may_attend, weights, np.array(np.nan, weights.dtype))
    weights, block = _pooled(weights)
    kind = "float16" if weights.dtype == np.float16 else "float32"
    header = {
        "shape": weights.shape,
        "kind": kind,
        "block": block,
        "query": list(query_tokens),
        "key": list(key_tokens),
        "chosen": chosen,
        "top": top,
        "scale": SCALES[theme],
        "masked": MASKED[theme],
        "words": _words(),
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    little = "<f2" if kind == "float16" else "<f4"
    return len(text).to_bytes(4, "little") + text + weights.astype(little).tobytes()


def valid_place(value: object, n_layers: int, n_heads: int) -> tuple[int, int] | None:
    """Return layer and head as the browser sent them, or None where they are no such thing."""
    if not (isinstance(value, list) and len(value) == 2):
        return None
    if not all(isinstance(part, int) and not isinstance(part, bool) for part in value):
        return None
    layer, head = value
    return (layer, head) if 0 <= layer < n_layers and 0 <= head < n_heads else None


def _pooled(weights: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int]:
    """Return the maps, and how many cells to a side one value stands for."""
    block = int(np.ceil(np.sqrt(weights.size / MAX_VALUES))) if weights.size > MAX_VALUES else 1
    if block == 1:
        return weights, 1
    n_layers, n_heads, n_query, n_key = weights.shape
    pad = ((0, 0), (0, 0), (0, -n_query % block), (0, -n_key % block))
    padded = np.pad(weights, pad, constant_values=np.nan)
    rows, columns = padded.shape[2] // block, padded.shape[3] // block
    parts = padded.reshape(n_layers, n_heads, rows, block, columns, block)
    return np.fmax.reduce(np.fmax.reduce(parts, axis=5), axis=3), block


def _words() -> dict[str, str]:
    return {
        "grid": _("All heads: layers down, heads across. Arrow keys move, a click picks a head."),
        "layer": _("Layer"),
        "head": _("Head"),
        "query": _("query"),
        "key": _("key"),
        "weight": _("weight"),
        "masked": _("masked"),
        "largest": _("largest weight"),
        "to": _("to"),
    }
