"""Words that move with the film of the head grid: the answer, a heading, a table, step by step.

The server says once what stands there at each step; while the training plays in the grid, the
browser shows the words of the step that it plays, and asks for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from pages.components.component import component

Tree = list["str | float | Tree"]
"""``[tag, class, *children]``; a child is text, a tree, or the share (0 to 1) that a bar shows."""

_component = component("moving", css=["moving.css"])


def moving(trees: Mapping[int, Tree], step: int, *, animation: str, key: str) -> None:
    """Show the tree of ``step``, and of another step while the film of that name stands there."""
    _component(
        {
            "trees": {str(at): tree for at, tree in trees.items()},
            "step": step,
            "animation": animation,
        },
        key=key,
    )
