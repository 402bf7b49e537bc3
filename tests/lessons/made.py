"""Lesson files and runs of a test's own."""

import dataclasses
import json
from pathlib import Path

from tfm_core.choices.config import Experiment
from tfm_core.lessons import attempts
from tfm_core.lessons.attempts import Attempt
from tfm_core.lessons.task import Verdict
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RunStore

SETTINGS = """
id = "width"
minutes = 7
pages = ["train"]

[experiment]
preset = "copy"
set = { "training.steps" = 40 }
open = ["model.d_model"]

[[tasks]]
id = "why"
check = "choice"

[[tasks]]
id = "half"
check = "number"
within = 0.1

[[tasks]]
id = "smallest"
check = "smallest"
setting = "model.d_model"
values = [8, 16, 32]
at_least = 0.9
page = "train"
"""
WORDS = """# Width

How wide must it be?

Some text.

## why: A question
Which one?

- [x] this
  It is.
- [ ] that
  It is not.

> Well done.

## half: A number
Half of 128?

- [x] 64
  Half.
- [ ] 256
  That is twice.

## smallest
Find it.
"""


def written(
    folder: Path, settings: str = SETTINGS, words: str = WORDS, name: str = "width"
) -> Path:
    """Write both files of a lesson and return the first."""
    path = folder / f"{name}.toml"
    path.write_text(settings, encoding="utf-8")
    (folder / f"{name}.md").write_text(words, encoding="utf-8")
    return path


def record(
    lesson: str,
    browser: str,
    task: str,
    *,
    answer: str,
    verdict: Verdict,
    root: Path | None = None,
) -> Attempt:
    """Keep an answer of a participant."""
    return attempts.change(
        lesson, browser, lambda old: old.answered(task, answer, verdict), root=root
    )


def add_run(lesson: str, browser: str, run_id: str, *, root: Path | None = None) -> Attempt:
    """Note a run that a participant started."""
    return attempts.change(lesson, browser, lambda old: old.with_run(run_id), root=root)


def finished_run(
    store: RunStore,
    experiment: Experiment,
    *,
    accuracy: float,
    lesson: str | None = None,
    owner: str | None = None,
    loss: float = 0.5,
    is_suspect: bool = False,
) -> Run:
    """A run that ended with a figure, as its worker would have left it."""
    run = store.create(
        experiment, lesson=lesson, owner=owner, state="finished", is_suspect=is_suspect
    )
    steps = experiment.training.steps
    write_status(run.folder, dataclasses.replace(run.status, state="finished", step=steps))
    line = {"event": "measured", "step": steps, "split": "test", "loss": loss, "accuracy": accuracy}
    (run.folder / "events.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    return run
