"""A diagram: DOT laid out in the browser, with nodes to click.

The layout is Graphviz, compiled to WebAssembly and served at /vendor/viz. A node keeps its place in
the view when another is picked, and the colours follow the theme.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pages.components import addresses
from pages.components.component import component, is_name, table_words
from pages.i18n import _
from tfm_core.plots.palette import BLUE, INKS, LINES, VERMILION

FILLS = {
    "light": {
        "data": "#fbfaf7",
        "embedding": "#f6e3c3",
        "attention": "#cfe2f3",
        "cross": "#ecd5e4",
        "feed-forward": "#cfe9e1",
        "norm": "#eceae3",
        "output": "#ece5c4",
        "sum": "#fbfaf7",
    },
    "dark": {
        "data": "#14171c",
        "embedding": "#4d3a17",
        "attention": "#1d3d5a",
        "cross": "#4a2d40",
        "feed-forward": "#17443a",
        "norm": "#2c323b",
        "output": "#453e1a",
        "sum": "#14171c",
    },
}

_component = component("diagram", css=["data_table.css", "diagram.css"])


def looks() -> dict[str, dict[str, str]]:
    """Return, by theme, the colours of the kinds of nodes, of ink and lines, and of arrows."""
    return {
        theme: {
            **FILLS[theme],
            "ink": INKS[theme],
            "line": LINES[theme],
            "gain": BLUE,
            "loss": VERMILION,
        }
        for theme in INKS
    }


def diagram(
    dot: str,
    nodes: Mapping[str, str],
    *,
    chosen: str,
    looks: Mapping[str, Mapping[str, str]],
    table: Sequence[Sequence[str]],
    on_pick: Callable[[str], None],
    key: str,
) -> None:
    """Draw a diagram; ``on_pick`` gets a clicked node before the next rerun.

    nodes: name -> what it is called aloud. looks: theme -> class of node, ``ink`` or ``line`` ->
    colour. table: the head and the rows of what it shows, in words and numbers.
    """

    words = table_words() | {
        "name": _("Diagram of the model"),
        "diagram": _("Diagram of {n} parts: arrow keys move, Enter opens one.", n=len(nodes)),
        "smaller": _("Smaller"),
        "larger": _("Larger"),
        "fit": _("Fit the width"),
        "all": _("Fit all"),
        "sorry": _("The diagram did not load. Reload the page."),
    }

    def picked(name: object) -> None:
        if is_name(name, nodes):
            on_pick(name)

    _component(
        {
            "dot": dot,
            "nodes": dict(nodes),
            "chosen": chosen,
            "looks": {theme: dict(look) for theme, look in looks.items()},
            "table": [list(row) for row in table],
            "root": addresses.root(),
            "words": words,
        },
        on={"pick": picked},
        key=key,
    )
