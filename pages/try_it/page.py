"""Try it: a trained model answers the visitor's input, of which kind depends on the model."""

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
from tfm_core.inspect.attention import trained
from tfm_core.runs.run import Run

SCOPE = "try"
OWN_TEXT = "train"


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to try a model.

    needs: the models it fits. draw: asks and answers. how: its section of
    ``content/<language>/texts/try.md``. has_steps: asks for the step itself, or shows none; others
    show the last. is_part: a fragment, above a link to all maps.
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
"""By the name in the address; the first that fits a model is its default."""
VIEW = Choice("view", first="", names=tuple(KINDS), key=f"{SCOPE}-view")


ANY = replace(
    shown_run.MODELS,
    what=N_("a model that reads or writes"),
    fits=lambda experiment: any(kind.needs.fits(experiment) for kind in KINDS.values()),
    is_ready=pictures.DIGITS.is_ready,
)


def page() -> None:
    more = show.header("try")
    with view.drawing():  # another kind has other fields
        requested = view.new_value(VIEW)
        if requested not in KINDS:
            requested = view.chosen_for(f"{SCOPE}-view", _holder())
        needs = KINDS[requested].needs if requested else ANY
        run = head.run(needs, is_needed=requested != OWN_TEXT)
        chosen = _chosen(run, requested, more)
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


def _holder() -> str:
    """Return the key of the current run, for which a chosen kind holds."""
    return f"run {state.current_run_id()}"


def _keep_run(run_id: str) -> None:
    """Make the shown default run the current one, since its kind was chosen."""
    state.set_current_run(run_id)
    view.hold(f"{SCOPE}-view", _holder())


def _chosen(run: Run | None, requested: str, more: DeltaGenerator) -> str:
    """Choose among the kinds that fit a run; offer the others, with their own runs, in ``more``."""
    fitting: list[str] = []
    for name, kind in KINDS.items():
        if run is not None and kind.needs.fits(run.experiment):
            same = [other for other in fitting if KINDS[other].draw is kind.draw]
            if same and name == requested:
                fitting.remove(same[0])
            if not same or name == requested:
                fitting.append(name)
    fitting = fitting or [requested or "write"]
    labels = {name: KINDS[name].label for name in fitting}
    with head.beside():
        shared: dict[str, Any] = {"holds_for": _holder()}
        field = view.held(named("", labels, always_in_url=True), **shared)
        if run is not None and len(labels) > 1:
            look = {**answer.COLLAPSED, "on_change": _keep_run, "args": (run.id,)}
            shared |= {"always_in_url": True, "is_list": False, "look": look}
            field = view.choice(N_("View"), labels, **shared)
        chosen = str(view.one(field, "view", SCOPE))
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
        other_run = next(iter(shown_run.fitting(KINDS[picked].needs)), None)
        state.jump("try", {"view": picked} | ({} if other_run is None else {"run": other_run.id}))
    return chosen


if __name__ == "__main__":
    page()
