"""Step 3: the same run with patience, beside the one that went on."""

from __future__ import annotations

import streamlit as st

from pages.ui import practice_steps, practice_train, runs_access, show
from pages.ui.practice_steps import Runs
from pages.ui.words import _
from tfm_core.inspect import practice
from tfm_core.training.patience import Patience


def view(runs: Runs) -> None:
    """Train with patience and say what was saved by it."""
    st.markdown(
        _(
            "The guided run again, from the same seed, with `patience = {n}`: it may wait {n} "
            "validations, that is {steps} steps. On the Train page it is an advanced setting."
        ).format(
            n=practice.PATIENCE,
            steps=practice.PATIENCE * practice.guided("early").training.validate_every,
        )
    )
    practice_steps.starter(["early"], _("Train with patience"), runs)
    if "early" in runs:
        practice_steps.live(["early"], runs, _draw)
    show.code(Patience)


def _draw(shown: Runs) -> None:
    run = shown["early"]
    left, right = st.columns(2)
    with left:
        practice_train.curves_of(run, "loss", name="early")
    with right:
        practice_train.curves_of(run, "accuracy", name="early")
    curves = runs_access.curves(run)
    place, status = curves.best_validation(), run.status
    if place is None or status.is_active:
        return
    saved = 1 - status.step / status.total_steps if status.total_steps else 0.0
    st.markdown(
        _(
            "Stopped at step **{step}**, **{saved}** of the steps saved. The weights of step "
            "**{best}** are kept as the best: {accuracy} of the validation pictures right there, "
            "{last} at the end."
        ).format(
            step=f"{status.step:,}",
            saved=show.percent(saved),
            best=f"{int(curves.validation['step'][place]):,}",
            accuracy=show.percent(float(curves.validation["accuracy"][place])),
            last=show.percent(float(curves.validation["accuracy"][-1])),
        )
    )
