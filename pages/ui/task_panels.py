"""What pages show of each kind of task: one record a kind, beside its record in the core.

The parts belong to different pages, so they are named and resolved where they are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfm_core.config import Experiment
from tfm_core.variants.record import resolve
from tfm_core.variants.tasks import TASK_KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPanels:
    """The panels of a kind of task, each as ``"module:name"``.

    sample(experiment): an example of the task in one line, before anything is trained, or nothing.
    example_name(experiment, item, number, *, is_short): an example in one line; a short one leaves
    the truth out where that is long. own(run, probe, selection): ask for an example of the user's
    own and read it; own_words: the page content that says how.
    """

    sample: str
    example_name: str
    own: str
    own_words: str

    def part(self, name: str) -> Any:
        """Return what a part names."""
        return resolve(getattr(self, name))


_TEXT = TaskPanels(
    sample="pages.home.samples:text",
    example_name="pages.ui.example_names:of_text",
    own="pages.attention.sentence:sentence",
    own_words="attention_own_text",
)
_IMAGE = TaskPanels(
    sample="pages.home.samples:pictures",
    example_name="pages.ui.example_names:of_picture",
    own="pages.attention.own:picture",
    own_words="attention_own_image",
)
TASK_PANELS: dict[str, TaskPanels] = {
    "text": _TEXT,
    "image": _IMAGE,
    "caption": TaskPanels(
        sample="pages.home.samples:scene",
        example_name="pages.ui.example_names:of_caption",
        own="pages.attention.own:described",
        own_words="attention_own_caption",
    ),
    "corpus": _TEXT,
    "own-pictures": _IMAGE,
    "own": _TEXT,
}
if lacking := set(TASK_KINDS) - set(TASK_PANELS):
    raise LookupError(f"Pages show nothing of tasks of the kind {', '.join(sorted(lacking))}.")


def panels(experiment: Experiment) -> TaskPanels:
    """Return the panels of an experiment's kind of task."""
    return TASK_PANELS[experiment.task.kind]


def example_name(experiment: Experiment, item: Any, number: int, *, is_short: bool = False) -> str:
    """Return an example of a probe in one line, numbered from 1."""
    named = panels(experiment).part("example_name")
    return str(named(experiment, item, number, is_short=is_short))
