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
    dim: Sequence[bool] = (),
    animation: SnapshotAnimation | None = None,
    step: int = 0,
    on_step: Callable[[int], None] | None = None,
    title: str = "",
    query_words: Sequence[str] = (),
    over: OverPicture | None = None,
) -> None:
    """Show every head; ``on_pick(layer, head)``, both from 0, is called before the next run.

    weights: (L, H, Q, K), float16 or float32. may_attend: bool, broadcastable to weights, True =
    may attend; the rest is grey. top: the weight with the most ink; None takes the largest of each
    head. dim: the heads to fade, row by row. animation: the same heads at every snapshot, which
    stands at ``step``; ``on_step`` hears where it was left. title: a heading. query_words: what is
    said of each query, where that is more than its token. over: draw the heads over a picture, not
    as matrices.
    """
    n_layers, n_heads = weights.shape[:2]
    steps = () if animation is None else animation.steps  # a session keeps what its callbacks hold

    def picked(head: object) -> None:
        if is_index(head, n_layers, n_heads):
            on_pick(*head)

    def moved(to: Any) -> None:
        if on_step is not None and to in steps:
            on_step(int(to))

    _component(
        pack(
            weights,
            query_tokens,
            key_tokens,
            chosen=chosen,
            theme=theme,
            may_attend=may_attend,
            top=top,
            dim=dim,
            animation=animation,
            step=step,
            title=title,
            query_words=query_words,
            over=over,
        ),
        on={"pick": picked, "step": moved},
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
    dim: Sequence[bool] = (),
    animation: SnapshotAnimation | None = None,
    step: int = 0,
    title: str = "",
    query_words: Sequence[str] = (),
    over: OverPicture | None = None,
    says: bool = False,
) -> bytes:
    """Return what the browser gets: header length (uint32), JSON header, weights (F, L, H, Q, K).

    says: the animation says the answer itself. Numbers are little-endian; a masked weight is NaN.
    Raises ValueError when tokens do not fit.
    """
    if weights.shape[2:] != (len(query_tokens), len(key_tokens)):
        raise ValueError(
            f"The maps are {weights.shape[2]} by {weights.shape[3]}, but there are "
            f"{len(query_tokens)} query and {len(key_tokens)} key tokens."
        )
    shown = single_frame(weights) if animation is None else animation
    values = shown.weights
    if may_attend is not None:
        values = np.where(may_attend, values, np.array(np.nan, values.dtype))
    values, block = pooled(values, MAX_VALUES)
    header = {
        "shape": values.shape[1:],
        "block": block,
        "query": list(query_tokens),
        "key": list(key_tokens),
        "rows": query_names(query_tokens, query_words),
        "title": title,
        "says": says,
        "over": None if over is None or block > 1 else over.header(len(key_tokens)),
        "chosen": chosen,
        "top": top,
        "scale": SCALES[theme],
        "masked": MASKED[theme],
        "dim": list(dim),
        "words": _words(),
        **shown.header(step if animation is not None else shown.steps[0]),
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
