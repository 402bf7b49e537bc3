"""Components without controls: scrolling, pressing a button, hiding icons, moving words."""

from __future__ import annotations

from collections.abc import Mapping

from pages.components.component import component

_arrival = component("arrival")


def arrival(place: str, *, key: str) -> None:
    """Say which place is shown; Streamlit would keep the place scrolled as the last one was."""
    _arrival({"place": place}, key=key)


_press = component("press")


def press(target: str, *, mark: str, key: str) -> None:
    """Press the button in the container of key ``target``, once for each new ``mark``."""
    _press({"target": target, "mark": mark}, key=key)


_reveal = component("reveal")


def reveal(marks: Mapping[str, str], *, key: str) -> None:
    """Scroll to a container whose mark has changed since the page was drawn last.

    marks: the key of the container -> what it shows now, empty while it shows nothing. Called
    behind all of them.
    """
    _reveal(dict(marks), key=key)


_icons = component("icons", html="", isolate_styles=False)


def hide_icons() -> None:
    """Let screen readers skip the icons of the page, those that come later too."""
    _icons(key="quiet-icons")


Tree = list["str | float | Tree"]
"""``[tag, class, *children]``; a child is text, a tree, or the share (0 to 1) that a bar shows."""

_moving = component("moving", css=["moving.css"])


def moving(trees: Mapping[int, Tree], step: int, *, animation: str, key: str) -> None:
    """Show the tree of ``step``, and of another step while the film of that name stands there."""
    _moving(
        {
            "trees": {str(at): tree for at, tree in trees.items()},
            "step": step,
            "animation": animation,
        },
        key=key,
    )
