"""Which run the page on GPTs shows: the current one where it fits, else the newest that does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from pages.i18n import N_, _
from pages.ui import fitting_run, offers, recorded, state, visitors
from pages.ui.typed import escape
from tfm_core.runs.run import Run

_MAX = 20


@dataclass(frozen=True, slots=True)
class Needs:
    """What a part of the page needs: which runs fit, what to say without one, what to train."""

    name: str
    fits: Callable[[Run], bool]
    sentence: str
    presets: tuple[str, ...]


def _is_language(run: Run) -> bool:
    return run.experiment.task.kind == "corpus"


def _adds(run: Run) -> bool:
    is_gpt = run.experiment.model.family == "decoder-only"
    return is_gpt and run.experiment.task.name == "addition"


LANGUAGE = Needs(
    "language",
    _is_language,
    N_("No trained language model yet."),
    ("gpt-grammar", "gpt-text"),
)
ADDITION = Needs(
    "addition",
    _adds,
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
    if not able:
        _empty(needs, [run for run in fitting if run.status.is_active])
        return
    run = fitting_run.pick(
        _("Model"),
        able,
        key=f"gpt-run-{needs.name}",
        describe=_name,
        about=_("Fitting runs, newest first, with their last saved weights."),
    )
    recorded.note(run, key=f"gpt-{needs.name}")
    part(run)


def _name(run: Run) -> str:
    words = _("{name}, step {step}: {task}")
    return words.format(
        name=run.meta.name, step=f"{run.status.step:,}", task=_(run.experiment.task.facts.label)
    )


def _empty(needs: Needs, training: list[Run]) -> None:
    if not training:
        offers.presets(needs.sentence, needs.presets, key="gpt-train")
        return
    with st.container(border=True, gap="medium"):
        st.info(
            _("“{name}” has not saved weights yet.", name=escape(training[0].meta.name)),
            icon=":material/hourglass_empty:",
        )
        st.button(_("Reload"), icon=":material/refresh:", key="gpt-look-again")
