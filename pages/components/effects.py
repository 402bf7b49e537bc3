"""Components without controls: scrolling, telling heights, pressing buttons, moving words."""

from __future__ import annotations

from collections.abc import Mapping

from pages.components.component import component

_effects = component("effects")  # each is sent as its name and its data


def arrival(place: str, part: str, *, title: str, key: str) -> None:
    """Give the focus to the title of a new place or part, and begin a place at its top.

    title: its selector, with ``>>>`` before what is inside a component.
    Streamlit would keep the scroll position, and the focus nowhere. What loses the focus later
    hands it to what comes in its place.
    """
    _effects(["arrival", {"place": place, "part": part, "title": title}], key=key)


def embedded(*, key: str) -> None:
    """Tell the site that shows the app in a frame how high the page is."""
    _effects(["embedded"], key=key)


def press(target: str, *, mark: str, key: str) -> None:
    """Press the button in the container of key ``target``, once for each new ``mark``."""
    _effects(["press", {"target": target, "mark": mark}], key=key)


def reveal(marks: Mapping[str, str], *, key: str) -> None:
    """Lead to a container whose mark has changed, if it is out of sight.

    marks: the key of the container -> what it shows now, empty while it shows nothing. Called
    behind all of them.
    """
    _effects(["reveal", dict(marks)], key=key)


def hide_icons() -> None:
    """Hide icons from screen readers: Streamlit reads out their file names."""
    _effects(["icons"], key="quiet-icons")


def follow_theme(*, is_dark: bool) -> None:
    """Draw the page anew when the reader changes the theme. is_dark: the theme it is drawn for."""
    _effects(["theme", {"dark": is_dark}], on={"theme": None}, key="follow-theme")


def announce_end(run: str, ended: str, *, key: str) -> None:
    """Tell screen readers how a run ended, once it has. ended: in words, empty until then."""
    _effects(["ended", {"run": run, "ended": ended}], key=key)


def keep_cookie(name: str, text: str, *, path: str, resets: int, key: str) -> None:
    """Have the browser keep a text for a year, together with what other tabs keep there.

    text: parts separated by "/". resets: forget what is there with each that is new.
    """
    _effects(
        ["cookie", {"name": name, "text": text, "path": path, "resets": resets}],
        key=key,
    )


Tree = list["str | float | Tree"]
"""``[tag, class, *children]``; a child is text, a tree, or the share (0 to 1) that a bar shows."""

_moving = component("moving", css=["moving.css"])


def moving(trees: Mapping[int, Tree], step: int, *, animation: str, key: str) -> None:
    """Draw the tree of ``step``, or of the step that the animation of that name shows."""
    _moving(
        {
            "trees": {str(at): tree for at, tree in trees.items()},
            "step": step,
            "animation": animation,
        },
        key=key,
    )
