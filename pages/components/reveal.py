"""Bring into sight what a press has changed, where it lies beyond the edge of the screen."""

from __future__ import annotations

from collections.abc import Mapping

from pages.components.component import component

_component = component("reveal")


def reveal(marks: Mapping[str, str], *, key: str) -> None:
    """Scroll to a container whose mark has changed since the page was drawn last.

    marks: the key of the container -> what it shows now, empty while it shows nothing. Called
    behind all of them.
    """
    _component(dict(marks), key=key)
