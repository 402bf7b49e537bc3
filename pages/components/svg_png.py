"""A picture that the server drew as SVG, to take away as PNG.

The browser makes the PNG, because it has the fonts for every token; a server may have none.
"""

from __future__ import annotations

import streamlit as st

from pages.components.files import bundled, joined

_component = st.components.v2.component(
    "svg_png",
    html='<div class="svg-png"></div>\n',
    css=joined("svg_png.css"),
    js=bundled("svg_png.js"),
)


def svg_as_png(svg: str, *, name: str, label: str, help_text: str, key: str) -> None:
    """Show a button that saves an SVG picture as ``name``.png, at twice its size."""
    _component(data={"svg": svg, "name": name, "label": label, "help": help_text}, key=key)
