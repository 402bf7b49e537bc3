"""Try it: a trained model answers what you give it; what it asks for follows the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import show, state
from pages.app.address import view
from pages.app.address.parameters import Choice, named
from pages.app.lessons import bar
from pages.app.navigation import head
from pages.app.runs import shown_run
from pages.app.runs.shown_run import Needs
from pages.i18n import N_, _, paragraph
from pages.try_it import answer, pictures, reading, writing
from tfm_core.choices.config import Experiment
from tfm_core.inspect.attention import trained
from tfm_core.runs.run import Run

SCOPE = "try"
OWN_TEXT = "train"


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to try a model: what it is asked, how it answers, and where it looks.

    needs: the models that can be tried so. draw: asks and answers, of a run. how: its section of
    ``content/<language>/texts/try.md``. has_steps: it asks which weights, or shows
    none; else the last are shown. is_part: it is drawn by itself, above a link to all maps.
    """

    label: str
    needs: Needs
    draw: Callable[..., None]
    how: str = ""
    has_steps: bool = False
    is_part: bool = False


KINDS = {
    "draw": Kind(N_("Draw a digit"), pictures.DIGITS, pictures.draw, "draw", has_steps=True),
    "patches": Kind(
        N_("CLS and patches"), pictures.PATCHES, pictures.patches, "patches", is_part=True
    ),
    "scene": Kind(N_("Compose a picture"), pictures.SCENES, writing.write, "scene", has_steps=True),
    "sentiment": Kind(
        N_("Sentiment"), reading.LABELS, reading.sentiment, "sentiment", is_part=True
    ),
    "blanks": Kind(N_("Fill in the blank"), reading.BLANKS, reading.blanks, "blanks", is_part=True),
    "continue": Kind(
        N_("Continue a text"), reading.LANGUAGE, writing.write, "write", has_steps=True
    ),
    "write": Kind(N_("Write"), writing.WRITES, writing.write, "write", has_steps=True),
    "read": Kind(N_("Read"), reading.LANGUAGE, reading.read, "read"),
    "lens": Kind(N_("Lens"), reading.LANGUAGE, reading.lens, "read"),
    "add": Kind(N_("Add"), reading.ADDITION, reading.add, "read"),
    OWN_TEXT: Kind(N_("Own text"), reading.LANGUAGE, reading.own_text, has_steps=True),
}
"""By the name in the address; a model is first tried in the first way that fits it."""
VIEW = Choice("view", first="", names=tuple(KINDS), key=f"{SCOPE}-view")


def _fits(experiment: Experiment) -> bool:
    return any(kind.needs.fits(experiment) for kind in KINDS.values())


ANY = replace(
    shown_run.MODELS,
    what=N_("a model that reads or writes"),
    fits=_fits,
    is_ready=pictures.DIGITS.is_ready,
)


def page() -> None:
    more = show.header("try")
    with view.drawing():  # another kind has other fields
        asked = _asked()
        needs = KINDS[asked].needs if asked else ANY
        run = head.run(needs, is_needed=asked != OWN_TEXT)
        chosen = _chosen(run, asked, more)
        kind = KINDS[chosen]
        try:
            if run is not None and not kind.has_steps:
                head.step([trained.model_of(run)[1]])
            if run is not None or chosen == OWN_TEXT:
                draw = st.fragment(kind.draw) if kind.is_part else kind.draw
                with view.warnings_in(st.container()):
                    draw(run)
                if kind.is_part and run is not None:
                    show.link("attention", _("Open all maps"), {"run": run.id})
        except (OSError, ValueError) as error:
            show.problem(error)


def _asked() -> str:
    """Return the kind that the link asks for, or that was chosen for this run, or ""."""
    linked = view.new_value(VIEW)
    return linked if linked in KINDS else view.chosen_for(f"{SCOPE}-view", _holder())


def _holder() -> str:
    """Return what a chosen kind holds for: the current run."""
    return f"run {state.current_run_id()}"


def _keep(run_id: str) -> None:
    """Stay with the run in sight, whose kind was chosen, although nobody had chosen that run."""
    state.set_current_run(run_id)
    view.hold(f"{SCOPE}-view", _holder())


def _chosen(run: Run | None, asked: str, more: DeltaGenerator) -> str:
    """Choose among the kinds that fit a run; offer the others, each with its own run.

    more: the place of what is offered besides.
    """
    fitting: list[str] = []
    for name, kind in KINDS.items():
        if run is not None and kind.needs.fits(run.experiment):
            same = [other for other in fitting if KINDS[other].draw is kind.draw]
            if same and name == asked:
                fitting.remove(same[0])
            if not same or name == asked:
                fitting.append(name)
    fitting = fitting or [asked or "write"]
    labels = {name: KINDS[name].label for name in fitting}
    with head.beside():
        shared: dict[str, Any] = {"holds_for": _holder()}
        offered = view.held(named("", labels, always_in_url=True), **shared)
        if run is not None and len(labels) > 1:
            look = {**answer.COLLAPSED, "on_change": _keep, "args": (run.id,)}
            shared |= {"always_in_url": True, "is_list": False, "look": look}
            offered = view.choice(N_("View"), labels, **shared)
        chosen = str(view.one(offered, "view", SCOPE))
    with more:
        others = [name for name in KINDS if name not in fitting]
        picked = st.menu_button(
            _("Try something else"),
            others,
            format_func=lambda name: _(KINDS[name].label),
            key=f"{SCOPE}-others",
            type="tertiary",
        )
        if chosen == "draw":
            bar.start("digit", _("Tour: six stops"))
        if how := KINDS[chosen].how:
            with st.popover(_("How it works"), type="tertiary"):
                show.prose(paragraph(f"try/how-{how}"))
    if picked is not None:
        found = next(iter(shown_run.fitting(KINDS[picked].needs)), None)
        state.jump("try", {"view": picked} | ({} if found is None else {"run": found.id}))
    return chosen


if __name__ == "__main__":
    page()
