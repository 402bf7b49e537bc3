"""What the address of the class page keeps."""

from __future__ import annotations

from dataclasses import dataclass

from pages.i18n import N_
from pages.ui.address.parameters import Choice
from pages.ui.address.view_link import linked

VIEW = Choice(
    "view",
    first="start",
    key="class-view",
    names=("start", "runs", "answers"),
    labels={"start": N_("Start"), "runs": N_("Runs"), "answers": N_("Answers")},
)
LESSON = Choice("of", first="", key="class-lesson", names=())
"""The lesson that is looked at; the page knows which there are."""


@dataclass(frozen=True, slots=True)
class ClassView:
    """What of the page stands in its link."""

    view: str = linked(VIEW)
    lesson: str = linked(LESSON)
