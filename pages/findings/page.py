"""Findings: a gallery whose cards move, and ``findings?finding=induction`` for each finding.

Every finding is drawn in one order: its figures with the known levels, the result, the control, the
cause, a question that hides nothing, its runs with more seeds, the paper.

To add a finding, add its record in ``tfm_core/studies``, its name in ``page_table.FINDINGS``, its
drawing in ``_FIGURES``, and its texts: ``<name>.md`` and its sections of ``discover.md``.
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
_FIGURES: dict[str, Callable[[Phenomenon, StudyRuns], None]] = {
    "induction": heads.draw_induction,
    "chains": chains.draw,
    "grokking": sums.draw_grokking,
    "adder": sums.draw_adder,
    "sinks": heads.draw_sinks,
    "specialise": heads.draw_roles,
    "memorising": memorising.draw,
}
"""Functions that draw the runs of a finding."""
_CARDS: dict[str, Callable[[StudyRuns], dict[str, Any]]] = {
    "induction": heads.induction_card,
    "sinks": heads.sinks_card,
    "specialise": heads.roles_card,
}
"""Functions that draw a card; the others show their first curves."""


def page() -> None:
    """Draw the gallery, or the finding that the address asks for.

    Only the address keeps which one: the bar of pages leads to the gallery again.
    """
    with view.drawing():
        address = view.query().get(FINDING, "")  # empty: the gallery
        field = view.held(CHOSEN, holds_for=f"address {address}")
        with view.warnings_in(st.container()):
            name = view.one(field, FINDING, SCOPE)
        if name:
            _finding(FINDINGS[name])
        else:
            _gallery()


def _gallery() -> None:
    """Draw a card for each finding: a moving picture, its title and a sentence."""
    with show.header(SCOPE):
        bar.start("discover", _("Tour: eight findings"))
    with st.container(key="findings-gallery"):
        for name in FINDINGS:
            text = show.words(name)
            with st.container(key=f"finding-card-{name}", gap=None):
                picture: dict[str, Any] = {}  # without the recorded runs
                if not isinstance(FINDINGS[name], Phenomenon):
                    picture = superposition.card()
                elif runs_access.store().lessons():
                    picture = _of_runs(name)
                moving_picture(picture, key=f"picture-{name}")
                _button(text.title, name)
                st.caption(text.intro)


def _button(label: str, name: str, icon: str | None = None) -> None:
    """Draw a button that opens a finding or the gallery; a link to this page would look active."""
    if st.button(label, icon=icon, type="tertiary", key=f"open-{name or 'all'}"):
        state.jump(SCOPE, {FINDING: name} if name else {})


def preload() -> None:
    """Compute the cards of recorded runs, so that no visitor waits for them."""
    if runs_access.store().lessons():
        for name in PHENOMENA:
            _of_runs(name)


@byte_cache.cached
def _of_runs(name: str) -> dict[str, Any]:
    """Return the moving picture of a card, drawn from the recorded runs of a finding."""
    chosen = PHENOMENA[name]
    trained = runs_of(chosen, runs_access.store().lessons())
    if name in _CARDS:
        return _CARDS[name](trained)
    # one metric of all arms, or all metrics of the first
    arms = chosen.arms[: None if len(chosen.metrics) == 1 else 1]
    lines = [
        curve
        for arm in arms
        for metric in chosen.metrics
        for curve in recipe.ended(trained, arm, metric).values()
    ]
    levels = recipe.levels(chosen, trained).values()
    return curves(lines, levels=[*levels], isLoss=chosen.metrics[0] == "validation-loss")


def _finding(chosen: KnownFinding) -> None:
    """Draw a finding, again and again while its runs train.

    The visitor's runs take the place of the recorded ones. Superposition has no runs in the store:
    its models are too small.
    """
    with show.header(SCOPE, of=chosen.name):
        _button(_("All findings"), "", ":material/grid_view:")
    if isinstance(chosen, Phenomenon):
        trained = comparison.study_runs(chosen)
        watched = trained if trained.runs else runs_of(chosen, runs_access.store().lessons())
        comparison.follow(trained.runs, partial(_draw, chosen, trained, watched))
    else:
        superposition.draw()
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
        _FIGURES[chosen.name](chosen, watched)
    except ValueError as error:  # files of a run are missing or damaged
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


if __name__ == "__main__":
    page()
