"""What figures of one kind have in common, so that each says only what is its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.plots.palette import GREY


def lay_out(
    figure: go.Figure,
    *,
    height: int,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    top: int = 8,
    **layout: Any,
) -> go.Figure:
    """Give a figure its height in pixels, small margins and its two axes, and return it.

    x, y: settings of the axes; a ``title`` is a text. top: the upper margin in pixels, larger for a
    legend above the figure. layout: further settings of the layout.
    """
    figure.update_layout(height=height, margin={"l": 8, "r": 8, "t": top, "b": 8}, **layout)
    figure.update_xaxes(**_axis(x))
    figure.update_yaxes(**_axis(y))
    return figure


def bars(
    names: Sequence[Any],
    values: npt.ArrayLike,
    colour: str | Sequence[str],
    *,
    texts: Sequence[str] = (),
    **more: Any,
) -> go.Bar:
    """Return bars that run to the right, one a name, with a text behind each if there are texts.

    colour: of all, or of each. more: further settings of the trace.
    """
    behind = {"text": list(texts), "textposition": "outside", "cliponaxis": False} if texts else {}
    marker = {"color": colour, **more.pop("marker", {})}
    return go.Bar(
        y=list(names),
        x=np.asarray(values, np.float32),
        orientation="h",
        marker=marker,
        **{**behind, **more},
    )


def reference_line(figure: go.Figure, *, x: float) -> None:
    """Add a dotted grey line from bottom to top at ``x``, to compare with."""
    figure.add_vline(x=x, line={"color": GREY, "width": 1, "dash": "dot"})


def _axis(settings: Mapping[str, Any]) -> dict[str, Any]:
    if "title" not in settings:
        return dict(settings)
    return {**settings, "title": {"text": settings["title"]}}
