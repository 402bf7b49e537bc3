"""What the bar of a task does in the browser: rings around what it speaks of, and folding."""

from __future__ import annotations

from collections.abc import Sequence

from pages.components.component import component, plain
from pages.i18n import _

_bar = component("task_bar", css=["task_bar.css"], isolate_styles=False)


def task_bar(
    *, place: str, outlines: Sequence[str], veils: Sequence[str], happened: str, key: str
) -> None:
    """Outline what a task speaks of, and watch over the bar that it is drawn in.

    place: names the task. outlines and veils: selectors, ``host >>> inner`` inside a component;
    veiled is what would give the answer away. happened: what screen readers hear once the task has
    what it waits for.
    """
    words = {"fold": _("Fold the task"), "unfold": _("Unfold the task")}
    data = {"place": place, "outlines": outlines, "veils": veils, "happened": happened}
    _bar(plain({**data, "words": words}), key=key)
