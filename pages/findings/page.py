"""Findings: a gallery whose cards move, and behind each card a finding, its figure first.

The address says which, ``findings?finding=induction``; without one it opens the gallery. Every
finding is drawn in one order: its figures, with what is known of the data drawn into them; what
they show; the control; the cause; a question that hides nothing; its runs, with more seeds; the
paper.

A finding is added by its record in ``tfm_core/studies``, its name in ``page_table.FINDINGS``, what
draws it in ``_LOOKS``, and its words: ``<name>.md`` for title, sentence and help, and its sections
of ``discover.md`` for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from pages.app import article, show, state
from pages.app.address import view
from pages.app.address.parameters import Choice
from pages.app.lessons import bar
from pages.app.navigation.page_table import FINDING
from pages.app.runs import comparison, runs_access
from pages.components.moving_picture import curves, moving_picture
from pages.findings import chains, heads, memorising, recipe, sums, superposition
from pages.i18n import _
from tfm_core import byte_cache
from tfm_core.studies.phenomena import FINDINGS, PHENOMENA
from tfm_core.studies.phenomenon import KnownFinding, Phenomenon
from tfm_core.studies.study import StudyRuns, runs_of

SCOPE = "findings"
CHOSEN = Choice(FINDING, first="", names=tuple(FINDINGS))
_LOOKS: dict[str, Callable[[Phenomenon, StudyRuns], None]] = {
    "induction": heads.draw_induction,
    "chains": chains.look,
    "grokking": sums.draw_grokking,
    "adder": sums.draw_adder,
    "sinks": heads.draw_sinks,
    "specialise": heads.draw_roles,
    "memorising": memorising.look,
}
"""What draws the runs of a finding, by its name."""
_CARDS: dict[str, Callable[[StudyRuns], dict[str, Any]]] = {
    "induction": heads.induction_card,
    "sinks": heads.sinks_card,
    "specialise": heads.roles_card,
}
"""What draws the card of a finding that its first curves do not show."""


def page() -> None:
    """Draw the gallery, or the finding that the address asks for.

    Only the address keeps which one: the bar of pages leads to the gallery again.
    """
    with view.drawing():
        asked = view.query().get(FINDING, "")  # without one, the gallery is asked for
        field = view.held(CHOSEN, holds_for=f"address {asked}")
        with view.warnings_in(st.container()):
            name = view.one(field, FINDING, SCOPE)
        if name:
            _finding(FINDINGS[name])
        else:
            _gallery()


def _gallery() -> None:
    """Draw a card a finding: what moves, its title, and a sentence on what it shows."""
    with show.header(SCOPE):
        bar.start("discover", _("Tour: eight findings"))
    with st.container(key="findings-gallery"):
        for name in FINDINGS:
            words = show.words(name)
            with st.container(key=f"finding-card-{name}", gap=None):
                moving_picture(_card(name), key=f"picture-{name}")
                _button(words.title, name)
                st.caption(words.intro)


def _button(label: str, name: str, icon: str | None = None) -> None:
    """Draw a button that opens a finding, or all: a link to this page would say that it is open."""
    if st.button(label, icon=icon, type="tertiary", key=f"open-{name or 'all'}"):
        state.jump(SCOPE, {FINDING: name} if name else {})


def _card(name: str) -> dict[str, Any]:
    """Return what moves on a card; nothing where the recorded runs are not here."""
    chosen = FINDINGS[name]
    if not isinstance(chosen, Phenomenon):
        return superposition.card()
    return _of_runs(chosen.name) if runs_access.store().lessons() else {}


@byte_cache.cached
def _of_runs(name: str) -> dict[str, Any]:
    """Return what moves on a card: what the recorded runs of a finding hold.

    Unless ``_CARDS`` has something more telling, that is the finding's own first figure.
    """
    chosen = PHENOMENA[name]
    trained = runs_of(chosen, runs_access.store().lessons())
    if name in _CARDS:
        return _CARDS[name](trained)
    # trained and new examples of the run that shows it, or the same of all
    arms = chosen.arms[: None if len(chosen.metrics) == 1 else 1]
    found = [
        curve
        for arm in arms
        for metric in chosen.metrics
        for curve in recipe.ended(trained, arm, metric).values()
    ]
    known = recipe.levels(chosen, trained).values()
    return curves(found, levels=[*known], isLoss=chosen.metrics[0] == "validation-loss")


def _finding(chosen: KnownFinding) -> None:
    """Draw a finding, again and again while its runs train.

    The visitor's own runs are shown as soon as there is one; before that those that come with the
    app. Superposition has no runs in the store: its models are too small for that.
    """
    with show.header(SCOPE, of=chosen.name):
        _button(_("All findings"), "", ":material/grid_view:")
    if isinstance(chosen, Phenomenon):
        trained = comparison.study_runs(chosen)
        watched = trained if trained.runs else runs_of(chosen, runs_access.store().lessons())
        comparison.follow(trained.runs, partial(_draw, chosen, trained, watched))
    else:
        superposition.look()
        _behind(chosen)
    st.caption(
        _(
            "From [{paper}]({address}). {differs}",
            paper=chosen.paper,
            address=chosen.address,
            differs=_(chosen.differs),
        )
    )


def _draw(chosen: Phenomenon, trained: StudyRuns, watched: StudyRuns, _is_live: bool) -> None:
    """Draw a finding. watched: the visitor's runs, or the recorded ones where there are none."""
    try:
        _LOOKS[chosen.name](chosen, watched)
    except ValueError as error:  # files of a run are gone, or damaged
        show.problem(error)
    pieces = (
        f":orange[**{text}**]" if is_marked else text
        for text, is_marked in chosen.example(chosen.base)
    )
    st.markdown(_("**For example:** {text}", text=" ".join(pieces)))
    _behind(chosen)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        comparison.study_buttons(chosen, trained, stays=True)
        first = recipe.shown_run(chosen, watched)
        if first is not None:
            show.link("attention", _("Look inside"), {"run": first.id})
    with st.container(horizontal=True, gap="medium"):
        comparison.arm_lines(chosen, watched, stopped=trained.stopped)


def _behind(chosen: KnownFinding) -> None:
    """Draw the cause and a guess below the figures of a finding."""
    st.markdown(_("**Why:** {words}", words=_(chosen.because)))
    article.check({chosen.name: chosen.question}, label=_("Guess first"))


page()
