"""Press a button that a page has just drawn: what was made for a press is saved by that press."""

from __future__ import annotations

from pages.components.component import component

_component = component("press")


def press(target: str, *, mark: str, key: str) -> None:
    """Press the button in the container of key ``target``, once for each new ``mark``."""
    _component({"target": target, "mark": mark}, key=key)
