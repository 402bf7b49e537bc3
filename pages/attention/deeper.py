"""The analyses below the maps, one at a time."""

from __future__ import annotations

import streamlit as st

from pages.attention import alignment as look_alignment
from pages.attention import arithmetic, compare, controls, explain, figures, heads, patches, take
from pages.attention import selection as chosen
from pages.attention.animation import Film
from pages.attention.selection_link import ARITHMETIC, VIEWS, Offer, Selection
from pages.i18n import _
from pages.ui.model import answer
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.example import Example
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run


def deeper(
    run: Run,
    probe: Probe,
    example: Example,
    selection: Selection,
    offer: Offer,
    film: Film | None,
    *,
    top: float | None,
) -> None:
    """Offer the questions that fit this run in one row, and answer the chosen one below it."""
    names = _questions(run, probe, example, selection, offer)
    question = selection.deeper if selection.deeper in names else ""
    if selection.view == ARITHMETIC and ARITHMETIC in names:
        question = ARITHMETIC
    st.header(_("Look deeper"), anchor=False)
    controls.segments(
        _("Look deeper"),
        names,
        question or None,
        "deeper",
        lambda name: _ask(run, selection, name),
        label_visibility="collapsed",
    )
    step = example.step if selection.example is not None else max(offer.steps, default=0)
    animation = None if film is None else film.animation
    if question == ARITHMETIC:
        arithmetic.arithmetic(run, example, selection)
    elif question == "answer":
        examples = (example,) if film is None else film.examples
        name = "" if animation is None else animation.name
        answer.details(run.experiment, examples, example.step, name=name)
    elif question == "heads":
        heads.table(run, selection, offer, step)
    elif question == "alignment":
        look_alignment.scores(run, step)
    elif question in {"explain", "rollout"}:
        _explained(run, example, selection, is_rollout=question == "rollout")
    elif question == "positions":
        patches.positions(run, offer.steps, step)
    elif question == "compare":
        compare.side_by_side(run, probe, example, selection, offer)
    elif question == "take":
        take.take_away(run, example, selection, top=top, animation=animation, step=step)


def _explained(run: Run, example: Example, selection: Selection, *, is_rollout: bool) -> None:
    if is_rollout:
        figures.rollout_over_layers(run, example, selection)
    else:
        explain.explanations(run, example)


def _ask(run: Run, selection: Selection, name: str) -> None:
    if name == ARITHMETIC:
        chosen.choose(run.id, view=ARITHMETIC)
        return
    view = VIEWS[0] if selection.view == ARITHMETIC else selection.view
    chosen.choose(run.id, view=view, deeper=name)


def _questions(
    run: Run, probe: Probe, example: Example, selection: Selection, offer: Offer
) -> dict[str, str]:
    names = {} if run.experiment.task.is_foreign else {ARITHMETIC: _("Arithmetic")}
    if example.answer is not None and example.probabilities is None:
        names["answer"] = _("Answer by token")
    names["compare"] = _("Compare")
    if offer.steps:
        names["heads"] = _("What heads do")
        if alignment.can_be_scored(run.experiment, probe):
            names["alignment"] = _("Which head aligns")
    if not run.experiment.task.has_model and figures.can_roll_out(run, selection):
        names["rollout"] = _("Rollout")
    if example.probabilities is not None:
        names["explain"] = _("Explanations")
    if offer.steps and patches.positions_are_learned(run.experiment):
        names["positions"] = _("Positions")
    return {**names, "take": _("Export")}
