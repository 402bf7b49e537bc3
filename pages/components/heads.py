"""All heads of one attention as maps, one head as lines, and both as a page that plays offline.

The weights travel as raw bytes behind a short JSON header and are drawn on canvases, because 48
plotly maps take two seconds to appear. With an animation the browser has every snapshot.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.component import (
    component,
    is_index,
    pack_bytes,
    player_words,
    pooled,
    query_names,
    table_words,
)
from pages.components.files import bundled
from pages.components.html_page import html_page
from pages.i18n import _
from tfm_core.inspect.attention.maps import MapView
from tfm_core.plots import described
from tfm_core.plots.heads.attention import MANY_KEYS
from tfm_core.plots.palette import MASKED, SCALES, ThemeName


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands beside the maps of a step: the model's answer, whether it is right, and a few
    words for each head, row by row.
    """

    step: int
    answer: str | None = None
    is_right: bool | None = None
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotAnimation:
    """The maps of one attention on one example at every snapshot.

    name: what is animated; another name starts anew. weights: (F, L, H, Q, K). curve: the steps and
    the values of a curve over the training, its name and colour.
    """

    name: str
    frames: Sequence[Frame]
    weights: npt.NDArray[Any]
    curve: tuple[list[int], list[float], str, str] | None = None

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(frame.step for frame in self.frames)

    def header(self, step: int) -> dict[str, Any]:
        """Return what the browser needs beside the weights, standing at a step of the animation."""
        curve = None
        if self.curve is not None:
            steps, values, name, colour = self.curve
            said = _(described.line(name, steps, values))
            curve = {
                "steps": steps,
                "values": values,
                "name": name,
                "described": said,
                "colour": colour,
            }
        return {
            "animation": self.name,
            "frames": [asdict(frame) for frame in self.frames],
            "frame": self.steps.index(step),
            "curve": curve,
        }


def single_frame(
    weights: npt.NDArray[Any], step: int = 0, labels: Sequence[str] = ()
) -> SnapshotAnimation:
    """Return an animation of one frame. weights: (L, H, Q, K)."""
    return SnapshotAnimation("", [Frame(step, labels=labels)], weights[None])


MAX_VALUES = 1_000_000  # weights of one moment sent at most; beyond, the largest of each block

_grid = component(
    "head_grid",
    css=["data_table.css", "head_grid.css"],
    html='<div class="heads"></div>\n',
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

    def read(self, weights: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], OverPicture]:
        """Return only what is drawn of weights (F, L, H, Q, K), as (F, L, H, 1, K), and how."""
        if self.row is None:
            kept = weights.mean(-2, keepdims=True, dtype=np.float32).astype(weights.dtype)
        else:
            kept = weights[..., self.row : self.row + 1, :]
        return kept, replace(self, row=0)

    def header(self, n_keys: int) -> dict[str, Any]:
        channels, size, _width = self.picture.shape
        return {
            "pixels": base64.b64encode(self.picture.tobytes()).decode(),
            "channels": channels,
            "size": size,
            "side": round((n_keys - self.first) ** 0.5),
            "first": self.first,
            "row": self.row,
            "who": self.who,
        }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GridStyle:
    """How the grid of heads is drawn.

    chosen: layer and head, from 0. top: the weight with the most ink; None: see ``top_of``, for
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
    look: GridStyle,
    *,
    on_pick: Callable[[int, int], None],
    key: str,
    on_step: Callable[[int], None] | None = None,
) -> None:
    """Draw all heads of (L, H, Q, K); ``on_pick(layer, head)`` counts from 0.

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

    _grid(pack_grid(view, look), on={"pick": picked, "step": moved}, key=key)


def pack_grid(view: MapView, look: GridStyle) -> bytes:
    """Return what the browser gets: header length (uint32), JSON header, weights (F, L, H, Q, K).

    Numbers are little-endian; a masked weight is NaN.
    """
    shown = single_frame(view.weights) if look.animation is None else look.animation
    over, query, rows = look.over, view.query, query_names(view.query, view.query_words)
    seen = view.seen(shown.weights)
    if over is not None and seen[0].size > MAX_VALUES:  # pooled patches would not fit the picture
        seen, over = over.read(seen)
        query, rows = (over.who,), [over.who]
    values, block = pooled(seen, MAX_VALUES)
    header = {
        "shape": values.shape[1:],
        "block": block,
        "query": list(query),
        "key": list(view.key),
        "rows": rows,
        "title": look.title,
        "says": look.says,
        "over": None if over is None or block > 1 else over.header(len(view.key)),
        "chosen": look.chosen,
        "top": look.top,
        "many": MANY_KEYS,
        "scale": SCALES[look.theme],
        "masked": MASKED[look.theme],
        "dim": list(look.dim),
        "words": _grid_words(),
        **shown.header(look.step if look.animation is not None else shown.steps[0]),
    }
    return pack_bytes(header | _places(view), values)


def _places(view: MapView) -> dict[str, int]:
    """Return where the keys of a stretch begin, if not at the first."""
    return {"first": view.first[1]} if view.first[1] else {}


def _grid_words() -> dict[str, str]:
    return {
        **table_words(),
        **player_words(),
        "does": _("What it does"),
        "query": _("query"),
        "grid": _("All heads: layers down, heads across. Arrow keys move."),
        "layer": _("Layer"),
        "head": _("Head"),
        "named": _("Layer {layer}, head {head}"),
        "patch": _("patch"),
        "key": _("key"),
        "weight": _("weight"),
        "masked": _("masked"),
        "largest": _("largest weight"),
        "step": _("Step"),
        "model": _("Model"),
        "right": _("right"),
        "wrong": _("wrong"),
        "save": _("Save as"),
    }


Pin = tuple[str, int]  # "q" or "k", and a index from 0

_lines = component("head_lines", css=["head_lines.css"], html='<div class="lines"></div>\n')


def head_lines(
    view: MapView, *, ink: str, pin: Pin | None, on_pin: Callable[[Pin | None], None], key: str
) -> None:
    """Show one head's weights (Q, K) as lines.

    on_pin: hears which token is pinned, and None when it is let go. ink: the colour of the lines.
    """
    n_query, n_key = view.weights.shape  # a session keeps what its callbacks hold
    first = dict(zip("qk", view.first, strict=True))

    def pinned(value: object) -> None:
        known, pin = valid_pin(value, n_query, n_key)
        if known:
            on_pin(pin and (pin[0], pin[1] + first[pin[0]]))

    _lines(pack_lines(view, ink=ink, pin=pin), on={"pin": pinned}, key=key)


def pack_lines(view: MapView, *, ink: str, pin: Pin | None) -> bytes:
    if pin is not None:
        side = "qk".index(pin[0])
        place = pin[1] - view.first[side]
        # it may have been pinned in a longer example, or in another stretch
        pin = (pin[0], place) if 0 <= place < view.weights.shape[side] else None
    header = {
        "query": list(view.query),
        "key": list(view.key),
        "rows": query_names(view.query, view.query_words),
        "titles": {"query": view.query_title, "key": view.key_title},
        "glosses": view.glosses,
        "ink": ink,
        "pin": pin,
        "words": _lines_words(),
    }
    return pack_bytes(header | _places(view), view.seen())


def valid_pin(value: object, n_query: int, n_key: int) -> tuple[bool, Pin | None]:
    """Return whether the value is valid, and the pin; None unpins."""
    if value == []:
        return True, None
    if is_index(value, 2, max(n_query, n_key)):
        side, index = value
        if index < (n_query, n_key)[side]:
            return True, ("qk"[side], index)
    return False, None


def _lines_words() -> dict[str, str]:
    return {
        "lines": _("Lines of one head. Arrow keys move, Enter pins."),
        "hint": _("Point at a token for its weights; click to pin."),
        "most": _("These are the 1,500 strongest lines. Point at a token for all its lines."),
        "query_of": _("reads"),
        "key_of": _("Queries that read"),
        "nobody": _("no weight"),
        "key": _("key"),
        "save": _("Save as"),
    }


_STYLES = (
    "focus.css",
    "shared.css",
    "data_table.css",
    "head_grid.css",
    "head_lines.css",
    "standalone.css",
)


def standalone(
    grid: bytes, lines: bytes | None, *, title: str, words: str, which: str, theme: ThemeName
) -> bytes:
    """Return a self-contained page, UTF-8.

    grid, lines: of ``head_grid.pack`` and ``head_lines.pack_lines``. title, words, which: plain
    text; ``which`` names the head of the lines. theme: that the grid was packed for.
    """
    data = {"grid-data": grid} if lines is None else {"grid-data": grid, "lines-data": lines}
    body = [
        f"<h1>{escape(title)}</h1><p>{escape(words)}</p>",
        '<main><div id="grid"><div class="heads"></div></div>',
        f'<div id="one"><h2 id="which">{escape(which)}</h2><div class="lines"></div></div></main>',
        *(
            f'<script type="text/plain" id="{name}">{base64.b64encode(content).decode()}</script>'
            for name, content in data.items()
        ),
    ]
    scripts = [f'document.documentElement.dataset.theme = "{theme}";', bundled("standalone.js")]
    return html_page(title, body, styles=_STYLES, scripts=scripts)
