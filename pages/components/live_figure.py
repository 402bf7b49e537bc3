"""A plotly figure whose data moves: ``Plotly.react`` on one node keeps zoom, hover, hidden lines.

A figure whose ``layout.meta`` says ``manyLines`` is drawn by uPlot, which is quicker a line.
``st.plotly_chart`` mounts a new node whenever its data changes. This component keeps its node,
sets ``uirevision``, follows the theme in the browser, and fills its container.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio

from pages.components import addresses
from pages.components.component import component, is_index, table_words
from pages.i18n import N_, _, language
from tfm_core.plots.described import described
from tfm_core.plots.kinds import template
from tfm_core.sentences import translated

CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "responsive": False,  # the component resizes it; plotly only follows the window
    "modeBarButtons": [["toImage"], ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
}
_BAR = {
    "Download plot as a PNG": N_("Download plot as a PNG"),
    "Download plot": N_("Download plot"),
    "Zoom": N_("Zoom"),
    "Pan": N_("Pan"),
    "Zoom in": N_("Zoom in"),
    "Zoom out": N_("Zoom out"),
    "Reset axes": N_("Reset axes"),
    "Double-click to zoom back out": N_("Double-click to zoom back out"),
}
"""What plotly itself writes, and what stands there."""
pio.templates.default = None  # it would be copied into each figure, and taken out again
_mount = component(
    "live_figure",
    css=[
        "shared.css",
        "live_figure.css",
        "data_table.css",
        "vendor/uplot/uplot.css",
        "many_lines.css",
    ],
    html='<div class="figure-box"><div class="live-figure"></div>'
    '<button type="button" class="figure-data"></button></div>\n',
    isolate_styles=False,
)


def live_figure(
    fig: go.Figure,
    *,
    key: str | None,
    name: str = "",
    on_pick: Callable[[int, int], None] | None = None,
    follows: bool = False,
) -> None:
    """Draw a figure under a stable key.

    name: what a screen reader says behind the sentences computed from it, without the marks of
    Markdown.
    on_pick: hears row and column, from 0, of a cell of the figure's heatmap that is clicked,
    or reached by the arrow keys and chosen with Enter.
    follows: the heatmap takes the weights of the head grid's animation while that plays.

    The figure's own template is left out, for the browser knows the theme better. Pass float32
    arrays of at most some 400 points a line; ``layout.height`` is kept (default 360).
    """

    cells = () if on_pick is None else np.shape(fig.data[0].z)  # the callback outlives the figure

    def picked(cell: object) -> None:
        if on_pick is not None and is_index(cell, *cells):
            on_pick(*cell)

    figure: dict[str, Any] = fig.to_dict()
    figure["layout"].pop("template", None)
    _mount(
        {
            "figure": pio.json.to_json_plotly(translated(figure, _)),
            "templates": _templates(),
            "config": CONFIG,
            "language": language(),
            "bar": {name: _(text) for name, text in _BAR.items()},
            "picks": on_pick is not None,
            "follows": follows,
            "name": re.sub(r"[*`]", "", name),
            "described": _(described(fig)),
            "words": {
                **table_words(),
                "savePng": _("Save as PNG"),
                "saveSvg": _("Save as SVG"),
                "whole": _("Reset view"),
            },
            "root": addresses.root(),
            "sorry": {
                "notLoaded": _("The figure did not load. Reload the page."),
                "notDrawn": _("This figure could not be drawn. Reload the page."),
            },
        },
        on={"cell": None if on_pick is None else picked},
        key=key,
    )


@cache
def _templates() -> str:
    return json.dumps({name: template(name).to_plotly_json() for name in ("light", "dark")})
