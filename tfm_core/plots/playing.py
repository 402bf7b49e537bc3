"""A slider and two buttons that play the frames of a figure, in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfm_core.plots.palette import BLUE, GREY
from tfm_core.sentences import N_


def controls(
    names: Sequence[str],
    *,
    duration: int,
    redraw: bool = False,
) -> dict[str, Any]:
    """Return the layout of controls for frames, named by their steps; the last is shown first.

    duration: of a frame, in milliseconds. redraw: plotly draws anew, as 3-D needs it.
    """
    shown = {"mode": "immediate", "transition": {"duration": 0}}
    slider = {
        "active": len(names) - 1,
        "currentvalue": {"prefix": N_("step {step}", step="")},
        "pad": {"t": 36, "l": 8, "r": 16},
        "x": 0.0,
        "len": 1.0,
        "ticklen": 4,
        "minorticklen": 0,
        "font": {"size": 11},
        "bgcolor": GREY,
        "activebgcolor": BLUE,
        "bordercolor": GREY,
        "steps": [
            {
                "label": name,
                "method": "animate",
                "execute": False,
                "args": [[name], shown | {"frame": {"duration": 0, "redraw": redraw}}],
            }
            for name in names
        ],
    }
    motion = {
        "fromcurrent": False,
        "mode": "immediate",
        "frame": {"duration": duration, "redraw": redraw},
        "transition": {"duration": 0 if redraw else duration - 100, "easing": "cubic-in-out"},
    }
    buttons = {
        "type": "buttons",
        "direction": "left",
        "showactive": False,
        "x": 0.0,
        "y": 1.0,
        "xanchor": "left",
        "yanchor": "bottom",
        "bgcolor": "rgba(125,133,146,0.2)",
        "bordercolor": GREY,
        "pad": {"b": 4},
        "buttons": [
            {"label": label, "method": "animate", "execute": False, "args": list(args)}
            for label, args in ((N_("▶ Play"), (None, motion)), (N_("❚❚ Pause"), ([None], shown)))
        ],
    }
    return {"sliders": [slider], "updatemenus": [buttons]}
