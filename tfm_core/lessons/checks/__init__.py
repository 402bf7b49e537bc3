"""The checks of tasks: what the app itself looks at to say whether a task is solved.

A task of a lesson file names its check; the fields of that check are the other keys of the task. A
check is a class in one of these files, and its name is in ``CHECKS``: reading a lesson, the page,
results and ``lesson check`` find it there.
"""

from __future__ import annotations

from collections.abc import Mapping

from tfm_core.lessons.checks.looked_into import BugNamed, FailsWithout, HeadAligns
from tfm_core.lessons.checks.measured import Reached, Smallest
from tfm_core.lessons.checks.questions import Choice, Number, PredictedCount
from tfm_core.lessons.checks.task import Task

CHECKS: Mapping[str, type[Task]] = {
    "reached": Reached,
    "smallest": Smallest,
    "head_aligns": HeadAligns,
    "fails_without": FailsWithout,
    "predicted_count": PredictedCount,
    "bug_named": BugNamed,
    "choice": Choice,
    "number": Number,
}
"""The checks by the name that a lesson file uses."""
