"""All heads of one attention at a glance: layers down, heads across, a click picks one.

The weights travel as raw bytes behind a short JSON header and are drawn on canvases, because 48
plotly maps take two seconds to appear. What is under the pointer is read from the same bytes, so it
is exact. With an animation it has every snapshot, and plays them without asking the server.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.animation import SnapshotAnimation, single_frame
from pages.components.component import component, is_index
from pages.components.packing import packed, pooled, query_names
from pages.i18n import _
from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.attention import MASKED, SCALES
from tfm_core.plots.palette import ThemeName
from tfm_core.plots.patches import INK

MAX_VALUES = 1_000_000  # weights of one moment sent at most; beyond, the largest of each block

_component = component(
    "head_grid", css=["packed.css", "head_grid.css"], html='<div class="heads"></div>\n'
)


@dataclass(frozen=True, slots=True, eq=False)
class OverPicture:
    """The picture (C, size, size), uint8, that the heads are drawn over, patch by patch.

    row: the query whose attention is drawn, None for the mean of all. first: how many keys stand
    before the patches. who: whose attention it is, in words.
    """

    picture: npt.NDArray[np.uint8]
    row: int | None
    first: int
    who: str

    def header(self, n_keys: int) -> dict[str, Any]:
        """Return what the browser needs to draw it."""
        channels, size, _width = self.picture.shape
        return {
            "pixels": base64.b64encode(self.picture.tobytes()).decode(),
            "channels": channels,
            "size": size,
            "side": round((n_keys - self.first) ** 0.5),
            "first": self.first,
            "row": self.row,
            "who": self.who,
            "ink": INK,
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GridLook:
    """How all heads are drawn.

    chosen: layer and head, from 0. top: the weight with the most ink; None takes the largest of
    each head. dim: the heads to fade, row by row. animation: the same heads at every snapshot,
    which stands at ``step``. title: a heading. over: draw the heads over a picture, not as
    matrices. says: the animation says the answer itself.
    """

    chosen: tuple[int, int]
    theme: ThemeName
    top: float | None = 1.0
    dim: Sequence[bool] = ()
    animation: SnapshotAnimation | None = None
    step: int = 0
    title: str = ""
    over: OverPicture | None = None
    says: bool = False


def head_grid(
    view: MapView,
    look: GridLook,
    *,
    on_pick: Callable[[int, int], None],
    key: str,
    on_step: Callable[[int], None] | None = None,
) -> None:
    """Show every head of (L, H, Q, K); ``on_pick(layer, head)``, from 0, comes before the next run.

    on_step: hears where an animation was left.
    """
    n_layers, n_heads = view.weights.shape[:2]
    # a session keeps what its callbacks hold
    steps = () if look.animation is None else look.animation.steps

    def picked(head: object) -> None:
        if is_index(head, n_layers, n_heads):
            on_pick(*head)

    def moved(to: Any) -> None:
        if on_step is not None and to in steps:
            on_step(int(to))

    _component(pack(view, look), on={"pick": picked, "step": moved}, key=key)


def pack(view: MapView, look: GridLook) -> bytes:
    """Return what the browser gets: header length (uint32), JSON header, weights (F, L, H, Q, K).

    Numbers are little-endian; a masked weight is NaN.
    """
    shown = single_frame(view.weights) if look.animation is None else look.animation
    values, block = pooled(view.seen(shown.weights), MAX_VALUES)
    header = {
        "shape": values.shape[1:],
        "block": block,
        "query": list(view.query),
        "key": list(view.key),
        "rows": query_names(view.query, view.query_words),
        "title": look.title,
        "says": look.says,
        "over": None if look.over is None or block > 1 else look.over.header(len(view.key)),
        "chosen": look.chosen,
        "top": look.top,
        "scale": SCALES[look.theme],
        "masked": MASKED[look.theme],
        "dim": list(look.dim),
        "words": _words(),
        **shown.header(look.step if look.animation is not None else shown.steps[0]),
    }
    return packed(header, values)


def _words() -> dict[str, str]:
    return {
        "grid": _("All heads: layers down, heads across. Arrow keys move, a click picks a head."),
        "layer": _("Layer"),
        "head": _("Head"),
        "patch": _("patch"),
        "key": _("key"),
        "weight": _("weight"),
        "masked": _("masked"),
        "largest": _("largest weight"),
        "to": _("to"),
        "play": _("Play the training"),
        "pause": _("Pause"),
        "back": _("Back"),
        "next": _("Next"),
        "scrub": _("Step of the training"),
        "step": _("Step"),
        "model": _("Model"),
        "right": _("right"),
        "wrong": _("not right"),
        "save": _("Save as"),
    }
