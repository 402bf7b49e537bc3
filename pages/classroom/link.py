"""What the address of the class page keeps."""

from __future__ import annotations

from pages.i18n import N_
from pages.ui.address.parameters import Choice

VIEW = Choice(
    "view",
    first="start",
    key="class-view",
    names=("start", "runs", "answers"),
    labels={"start": N_("Start"), "runs": N_("Runs"), "answers": N_("Answers")},
)
LESSON = Choice("of", first="", key="class-lesson", names=())
"""The lesson that is looked at; the page knows which there are."""
