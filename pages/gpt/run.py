"""What the page shows: its part, and a run that fits it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pages.i18n import N_, _
from pages.ui import state
from pages.ui.accounts import visitors
from pages.ui.address import parameters
from pages.ui.fact_line import fact_line
from pages.ui.runs import shown_run
from tfm_core.runs.run import Run

_MAX = 20
PART = parameters.named(
    "part",
    {
        "read": N_("Read"),
        "write": N_("Write"),
        "lens": N_("Lens"),
        "add": N_("Add"),
        "train": N_("Own text"),
    },
    key="gpt-part",
)


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a part: which runs fit, and what to offer without one."""

    name: str
    fits: Callable[[Run], bool]
    sentence: str
    presets: tuple[str, ...]


LANGUAGE = Needs(
    "language",
    lambda run: run.experiment.task.facts.answer == "text",
    N_("No trained language model yet."),
    ("gpt-grammar", "gpt-text"),
)
ADDITION = Needs(
    "addition",
    lambda run: (
        run.experiment.model.family == "decoder-only" and run.experiment.task.name == "addition"
    ),
    N_("No GPT has learned to add yet."),
    ("addition-3", "addition"),
)


def with_run(needs: Needs, part: Callable[[Run], None]) -> None:
    """Draw a part with a run that fits, or offer to train one."""
    fitting = [run for run in visitors.at_hand() if run.problem is None and needs.fits(run)]
    able = [run for run in fitting if run.has_checkpoint][:_MAX]
    current = state.current_run_id()
    if current is not None and current not in [run.id for run in able]:
        able += [run for run in fitting if run.id == current and run.has_checkpoint]
    training = [run for run in fitting if run.status.is_active]
    if not able and training:
        shown_run.no_weights(training[0], key="gpt")
        return
    if not able:
        shown_run.preset_buttons(needs.sentence, needs.presets, key="gpt-train")
        return
    facts, choices = fact_line(f"gpt-{needs.name}")
    with choices:
        run = shown_run.choose_run(
            _("Model"),
            able,
            key=f"gpt-run-{needs.name}",
            describe=_name,
            about=_("Fitting runs, newest first."),
        )
        shown_run.recorded_note(run, key=f"gpt-{needs.name}")
    step, task = f"{run.status.step:,}", _(run.experiment.task.facts.label)
    facts.caption(shown_run.facts_of(run, task, _("step {step}", step=step)))
    part(run)


def _name(run: Run) -> str:
    return _(
        "{name}, step {step}: {task}",
        name=run.meta.name,
        step=f"{run.status.step:,}",
        task=_(run.experiment.task.facts.label),
    )
