"""A look in a notebook: every head as a picture, and one map as a figure; the app's own colours."""

from __future__ import annotations

from html import escape

import numpy as np
import plotly.graph_objects as go

from tfm_core.inspect.attention.maps import MapView
from tfm_core.looking.seen import AttentionMap, Seen
from tfm_core.plots.export import cell_colours, map_svg
from tfm_core.plots.heads.attention import head_map, usual_top
from tfm_core.plots.kinds import template
from tfm_core.plots.palette import SCALES, ThemeName
from tfm_core.plots.png import png_url
from tfm_core.sentences import N_, StudentError

_MAX_MAPS, _MAX_HEADS, _SIDE, _MAX_CELLS = 48, 32, 96, 192
_LARGE = 40
"""Positions of a map that is drawn large, with its tokens."""


def figure(
    look: Seen,
    one: AttentionMap,
    *,
    head: int | None,
    example: int,
    theme: ThemeName,
) -> go.Figure:
    """Return one head, or the mean of all, as a figure. Raises StudentError for none of its own."""
    title = one.name or look.model
    if head is not None:
        title = f"{title}, head {head + 1}"
    view = _view(look, one, head=head, example=example)
    shown = head_map(view, title, top=usual_top(view.seen()))
    return shown.update_layout(template=template(theme))


def page_part(look: Seen) -> str:
    """Return HTML that needs nothing else: all heads of the first example as pictures."""
    lines = repr(look).splitlines()
    parts = [f"<p>{escape(lines[0])}</p>"]
    for one in list(look.maps.values())[:_MAX_MAPS]:
        words = ", ".join(filter(None, [one.kind, "causal" if one.is_causal else "", one.problem]))
        n_heads = one.weights.shape[1]
        heads = range(min(n_heads, _MAX_HEADS))
        pictures = "".join(_picture(look, one, head) for head in heads)
        if n_heads > _MAX_HEADS:
            words += f", {n_heads - _MAX_HEADS} more heads"
        parts.append(
            f"<div><code>{escape(one.name or look.model)}</code> {escape(words)}"
            f"<div style='display:flex;flex-wrap:wrap;gap:4px;margin:2px 0 8px'>{pictures}</div>"
            "</div>"
        )
    if len(look.maps) > _MAX_MAPS:
        parts.append(f"<p>{len(look.maps) - _MAX_MAPS} more maps</p>")
    first = next(iter(look.maps.values()), None)
    if first is not None and max(first.weights.shape[-2:]) <= _LARGE:
        view = _view(look, first, head=None, example=0)
        svg = map_svg(view, title=f"{first.name or look.model}, mean of all heads", top=None)
        parts.append(svg.decode())
    parts += [f"<p>{escape(str(one))}</p>" for one in look.unseen]
    return "".join(parts)


def _picture(look: Seen, one: AttentionMap, head: int) -> str:
    view = _view(look, one, head=head, example=0)
    every = -(-max(view.weights.shape) // _MAX_CELLS)
    rows, columns = (-(-size // every) for size in view.weights.shape)
    padded = np.zeros((rows * every, columns * every), np.float32)
    padded[: view.weights.shape[0], : view.weights.shape[1]] = view.weights
    allowed = np.zeros(padded.shape, np.bool_)
    allowed[: view.weights.shape[0], : view.weights.shape[1]] = view.allowed
    small = padded.reshape(rows, every, columns, every).max((1, 3))
    mask = np.asarray(allowed.reshape(rows, every, columns, every).any((1, 3)))
    names = tuple(map(str, range(max(rows, columns))))
    pooled = MapView(small, names[:rows], names[:columns], mask)
    colours = cell_colours(pooled, SCALES["light"], 0.0, usual_top(view.seen()), "light")
    words = escape(f"{one.name or look.model}, head {head + 1}", quote=True)
    return (
        f"<img src='{png_url(colours)}' alt='{words}' title='{words}' width='{_SIDE}' "
        f"height='{max(8, round(_SIDE * rows / columns)) if rows < columns else _SIDE}' "
        "style='image-rendering:pixelated;border:1px solid #c8c8c8'>"
    )


def _view(look: Seen, one: AttentionMap, *, head: int | None, example: int) -> MapView:
    n_examples, n_heads = one.weights.shape[:2]
    for number, n, called in (
        (example, n_examples, N_("Example")),
        (head or 0, n_heads, N_("Head")),
    ):
        if not 0 <= number < n:
            raise StudentError(
                "{what} {number} does not exist; there are {n}, from 0.",
                what=called,
                number=number,
                n=n,
            )
    weights = one.weights[example]
    allowed = None
    if one.allowed is not None:
        whole = one.allowed.expand(one.weights.shape)[example]
        allowed = (whole.any(0) if head is None else whole[head]).numpy()
    query, key = look.names(one)
    values = weights.mean(0) if head is None else weights[head]
    return MapView(values.numpy(), query, key, allowed)
