"""What the owner of a run may ask of its worker: a button each, in the states in which it helps."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pages.i18n import N_
from pages.ui import run_actions
from tfm_core.runs.process.requests import RequestKind
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, Status

ANSWER_WITHIN = 0.3
"""Seconds that a press waits for the worker's answer before the page is drawn again."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request as a button: its word, icon and help, and the states in which it makes sense."""

    kind: RequestKind
    label: str
    icon: str
    help: str
    states: frozenset[State]


ASKS = (
    Ask(
        "pause",
        N_("Pause"),
        ":material/pause:",
        N_("Pause the training. Nothing is lost."),
        frozenset({"running"}),
    ),
    Ask(
        "resume",
        N_("Resume"),
        ":material/play_arrow:",
        N_("Continue the training."),
        frozenset({"paused"}),
    ),
    Ask(
        "stop",
        N_("Stop"),
        ":material/stop:",
        N_("Stop the training. You can resume it later."),
        frozenset({"starting", "running", "paused"}),
    ),
    Ask(
        "stop",
        N_("Cancel"),
        ":material/close:",
        N_("Leave the queue. You can resume later."),
        frozenset({"queued"}),
    ),
)


def fitting(status: Status) -> list[Ask]:
    """Return what can be asked in a state."""
    return [one for one in ASKS if status.state in one.states]


def ask(run: Run, kind: RequestKind, times: int = 1) -> None:
    """Ask the worker, and wait for its answer about as long as a step takes.

    So the next rerun shows it; a slower answer is shown by a later look.
    """
    before = run.status
    if all(run_actions.ask(run, kind) for _press in range(times)):
        _await_answer(run, before)


def _await_answer(run: Run, before: Status) -> None:
    end = time.monotonic() + ANSWER_WITHIN
    while time.monotonic() < end:
        now = run.status
        if now.state != before.state or (before.state == "paused" and now.step != before.step):
            return
        time.sleep(0.02)
