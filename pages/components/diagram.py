"""The architecture diagram: DOT laid out in the browser, its nodes to click and to walk by keys.

The layout is Graphviz's own, compiled to WebAssembly, which the app serves at /vendor/viz. A node
keeps its place in the view when another is picked, and the colours follow the theme by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from pages.components import served
from pages.components.files import bundled, joined
from pages.i18n import _

_component = st.components.v2.component(
    "diagram",
    html='<div class="diagram"></div>',
    css=joined("diagram.css"),
    js=bundled("diagram.js"),
)


def diagram(
    dot: str,
    nodes: Mapping[str, str],
    *,
    across: Sequence[tuple[str, str]] = (),
    chosen: str,
    looks: Mapping[str, Mapping[str, str]],
    on_pick: Callable[[str], None],
    key: str,
) -> None:
    """Show a diagram; ``on_pick(name)`` is called with a clicked node, before the next run.

    nodes: name -> what it is called aloud. across: tail and head of arrows from the first column to
    the second. looks: theme -> class of node, ``ink`` or ``line`` ->
    colour.
    """

    def picked() -> None:
        name = st.session_state.get(key, {}).get("pick")
        if isinstance(name, str) and name in nodes:
            on_pick(name)

    _component(
        key=key,
        on_pick_change=picked,
        data={
            "dot": dot,
            "nodes": dict(nodes),
            "across": [list(ends) for ends in across],
            "chosen": chosen,
            "looks": {theme: dict(look) for theme, look in looks.items()},
            "root": served.root(),
            "words": {
                "diagram": _("Diagram. Arrow keys move from block to block, Enter opens one."),
                "smaller": _("Smaller"),
                "larger": _("Larger"),
                "fit": _("Fit the width"),
                "all": _("Fit all"),
                "sorry": _("The script that draws diagrams could not be loaded; reload the page."),
            },
        },
    )
