"""A picture that the server drew as SVG, to take away as PNG.

The browser makes the PNG, because it has the fonts for every token; a server may have none.
"""

from __future__ import annotations

from pages.components.component import component

_component = component("svg_png", css=["svg_png.css"])


def svg_as_png(svg: str, *, name: str, label: str, help_text: str, key: str) -> None:
    """Show a button that saves an SVG picture as ``name``.png, at twice its size."""
    _component({"svg": svg, "name": name, "label": label, "help": help_text}, key=key)
