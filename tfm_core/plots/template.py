"""The look that all figures share: a plotly template for the light and one for the dark theme.

Figures carry it themselves, because plotly's default becomes one with placeholder colours as soon
as Streamlit is imported.
"""

from __future__ import annotations

from functools import cache

import plotly.graph_objects as go

from tfm_core.plots.palette import (
    BACKGROUNDS,
    BLUE,
    CARDS,
    GREEN,
    GREY,
    INKS,
    LINES,
    OCHRE,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    ThemeName,
)

FONT = (
    "Inter, 'Noto Sans KR', 'Noto Sans CJK KR', 'Apple SD Gothic Neo', 'Malgun Gothic', sans-serif"
)
COLORWAY = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, OCHRE, GREY)


@cache
def template(theme: ThemeName) -> go.layout.Template:
    """Return the template of a theme: transparent, a quiet grid, our colours, Korean glyphs."""
    ink, line, background = INKS[theme], LINES[theme], BACKGROUNDS[theme]
    axis = {
        "gridcolor": line,
        "linecolor": line,
        "zerolinecolor": line,
        "ticks": "",
        "ticklabelstandoff": 3,  # keeps the two zeros of a corner, and tokens and cells, apart
        "automargin": True,
        "spikecolor": GREY,
        "spikethickness": 1,
        "spikedash": "dot",
        "title": {"standoff": 8, "font": {"size": 13}},
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": ink},
            "title": {"font": {"size": 15}, "x": 0, "xanchor": "left"},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": COLORWAY,
            "colorscale": {"sequential": sequential(theme)},
            "margin": {"l": 48, "r": 16, "t": 32, "b": 44},
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {
                "bgcolor": CARDS[theme],
                "bordercolor": line,
                "font": {"family": FONT, "color": ink},
            },
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": ink},
            "dragmode": "zoom",
            "hovermode": "closest",
        },
        data={
            "heatmap": [{"colorbar": {"outlinewidth": 0, "thickness": 12, "tickcolor": line}}],
            "scatter": [{"line": {"width": 2}, "marker": {"line": {"color": background}}}],
        },
    )


def sequential(theme: ThemeName) -> list[tuple[float, str]]:
    """Return the scale for weights from 0 to 1: nothing is the background, all is strong blue."""
    if theme == "light":
        return [(0.0, "#f6f4ee"), (0.25, "#bcd7ec"), (0.6, "#4a95cf"), (1.0, "#0b3f70")]
    return [(0.0, "#1a1e25"), (0.25, "#1f4a70"), (0.6, "#3f95d6"), (1.0, "#d8ecfb")]
