"""Where published links lead: pages that are part of another, and parameters by another name.

The server redirects the address of such a page; what else names one, such as a lesson of a
teacher's own, asks ``current``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pages.app.address.parameters import whole
from pages.app.navigation.page_table import FINDING, FINDINGS


@dataclass(frozen=True, slots=True)
class Old:
    """What became of a page or of its parameters.

    page: its name today. renamed: parameter → its name today; a number is a step as ever. besides:
    what its link asks for where it does not say so itself. mark: which of the acts of today's page
    its own was, whatever was done; "" where its questions are among those of today's.
    """

    page: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    besides: Mapping[str, str] = field(default_factory=dict)
    mark: str = ""


_GPT = {"part": "view", "prompt": "text", "lens": "text", "sum": "text"}
OLD: dict[str, Old] = {
    "translate": Old(
        "try", {"weights": "step", "picture": "scene"}, {"view": "write", "method": "greedy"}
    ),
    "draw": Old("try", {}, {"view": "draw"}),
    "gpt": Old("try", _GPT, {"view": "read"}),
    "encoders": Old("try", {}, {"view": "sentiment"}),
    "captions": Old("try", {}, {"view": "scene"}),
    "walk": Old("walk", {"step": "part", "weights": "step"}),
    "positions": Old("positions", {"picture": "example"}),
    "words": Old("numbers", {"view": "figure"}),
    "tensors": Old("numbers", {}, {"figure": "operation"}),
    "before": Old("before", {"view": "figure"}),
    "practice": Old("practice", {"step": "figure"}),
    "speed": Old("practice", {}, {"figure": "speed"}),
    "lessons": Old("challenges"),
    "experiments": Old("challenges", {}, {"experiment": "no-causal-mask"}, mark="experiment"),
    "find-the-bug": Old("challenges", {"level": "bug"}, {"bug": "2"}, mark="bug"),
    **{name: Old("findings", {}, {FINDING: name}) for name in FINDINGS},
}
"""By the name that links say."""
_VIEWS = {("gpt", "write"): "continue"}
"""Old page and the view that its link says → the name of that view today."""


def current(page: str, query: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the page that an address leads to today, and its query."""
    old = OLD.get(page)
    if old is None:
        return page, dict(query)
    found: dict[str, str] = {}
    for name, text in query.items():
        is_step = name == "step" and whole(text) is not None
        found[name if is_step else old.renamed.get(name, name)] = text
    found = {**old.besides, **found}
    if "view" in found:
        found["view"] = _VIEWS.get((page, found["view"]), found["view"])
    return old.page, found
