"""A beam search as a tree: a column a token, the best text so far at the top."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from tfm_core.inspect.writing.beams import BeamNode
from tfm_core.inspect.writing.steps import in_nats
from tfm_core.plots.language import marked
from tfm_core.plots.palette import COLOURS, GREY
from tfm_core.sentences import N_

_LONGEST = 9  # letters of a token that are drawn; hover says all


def beam_tree(nodes: Sequence[BeamNode], *, most: int = 16) -> go.Figure:
    """Draw the nodes of a tree, of a long one the last ``most`` steps.

    Branches that lead to a text that is still kept at the end are coloured, the others grey.
    """
    last = max(node.step for node in nodes)
    first = max(0, last - most + 1)
    shown = [node for node in nodes if node.step >= first]
    figure = go.Figure()
    for lives, colour, width, dash in (
        (False, GREY, 1.0, "dot"),
        (True, COLOURS["cross"], 2.5, "solid"),
    ):
        x: list[float | None] = []
        y: list[float | None] = []
        for node in shown:
            if node.lives == lives and node.parent is not None and node.step > first:
                x += [node.step, node.step + 1, None]
                y += [node.parent + 1, node.place + 1, None]
        figure.add_scatter(
            x=x, y=y, mode="lines", hoverinfo="skip", showlegend=False,
            line={"color": colour, "width": width, "dash": dash},
        )  # fmt: skip
    for lives, colour in ((False, GREY), (True, COLOURS["cross"])):
        figure.add_scatter(**_marks([node for node in shown if node.lives == lives], colour))
    depth = max(node.place for node in shown) + 1
    figure.update_layout(
        height=70 + 52 * depth, margin={"l": 8, "r": 8, "t": 8, "b": 8}, showlegend=False
    )
    figure.update_xaxes(
        title=N_("token"), range=[first + 0.4, last + 1.6], dtick=1, showgrid=False, zeroline=False
    )
    figure.update_yaxes(
        title=N_("place in the beam"), range=[depth + 0.75, 0.4], dtick=1, showgrid=False,
        zeroline=False,
    )  # fmt: skip
    return figure


def _marks(nodes: Sequence[BeamNode], colour: str) -> dict[str, object]:
    return {
        "x": [node.step + 1 for node in nodes],
        "y": [node.place + 1 for node in nodes],
        "mode": "markers+text",
        "text": [_label(node) for node in nodes],
        "textposition": "top center",
        "textfont": {"size": 12},
        "cliponaxis": False,
        "marker": {
            "color": colour,
            "size": [8 if node.is_new else 4 for node in nodes],
            "symbol": ["square" if node.is_done else "circle" for node in nodes],
        },
        "customdata": [
            f"{escape(' '.join(map(marked, node.text)))}<br>ln p {node.score:.3f}" for node in nodes
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _label(node: BeamNode) -> str:
    if not node.is_new:
        return ""
    token = marked(node.token)
    short = token if len(token) <= _LONGEST else f"{token[: _LONGEST - 1]}…"
    return f"{escape(short, quote=False)}<br><sup>{in_nats(node.score)}</sup>"
