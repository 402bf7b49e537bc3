"""Walk through: one forward pass, step by step, with its shapes, its code and its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from pages.components import picture as model_picture
from pages.i18n import _
from pages.ui import show, state
from pages.ui.address import view_link
from pages.ui.model import walk_steps
from pages.ui.state import body
from pages.walk import link, picture, source, tensor

if TYPE_CHECKING:
    from pages.ui.settings.model_choice import Chosen
    from tfm_core.inspect.walk.forward import Subject


def page() -> None:
    show.header("walk")
    body(_walk)


def _walk() -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        line = st.container(width="stretch")
        choices = st.popover(_("Change"), icon=":material/tune:", key="walk-change")
    above = st.container()
    try:
        with choices:
            chosen = source.pick()
        with st.spinner(_("One forward pass …"), show_time=False):
            name, subject = source.walked(chosen)
    except ValueError as error:
        show.problem(error)
        return
    with choices:
        example = tensor.example_picker(subject)
        layer = tensor.layer_picker(subject)
    line.caption(" ".join((_(subject.note), tensor.example_name(subject, example))))
    with above:
        _picture(subject, chosen, example)
    from tfm_core.inspect.walk.build import walk

    try:
        steps = walk(subject, layer=layer, example=example)
    except ValueError as error:
        show.problem(error)
        return
    names = [step.name for step in steps]
    number, problem = walk_steps.current(names, link.steps_of(subject.config))
    view_link.warn(problem)
    step = steps[number - 1]
    walk_steps.navigation(steps, number)
    st.header(f"{number} · {_(step.title)}", anchor=False)
    if step.block:
        st.caption(_("Inside `{block}`", block=step.block))
    left, right = st.columns(2, gap="medium")
    with left:
        above = st.container()
        walk_steps.question(step, name, example)
        is_revealed = walk_steps.is_step_revealed(step, name, example)
        with above:  # drawn last: a correct answer reveals the result above
            walk_steps.shapes(step, subject, example, is_revealed=is_revealed)
            walk_steps.explanation(step, subject, names, is_revealed=is_revealed)
    with right:
        if is_revealed and step.name == "patches":
            picture.cut(subject, example)
        if is_revealed and step.name == "whole":
            picture.written(subject, example)
        over = st.container()
        tensor.tensor(step, subject, example, is_revealed=is_revealed)
        if is_revealed and step.name == "softmax":
            tensor.mistake(subject, step, example)
        if is_revealed and step.name == "cross-attention":
            with over:  # drawn last: it shows the head that is chosen for the map
                picture.looks(subject, step, example)
        picture.used(step)


def _picture(subject: Subject, chosen: Chosen | str, example: int) -> None:
    """Draw the whole model at work; a click explains a step or knocks a part out."""
    from tfm_core.inspect.knockouts.parts import parts_of
    from tfm_core.inspect.picture import picture as whole
    from tfm_core.inspect.walk.subject import n_blocks

    count = n_blocks(subject.config)  # a session keeps what its callbacks hold
    run = None if isinstance(chosen, str) else chosen.run

    def explain(name: str, block: int) -> None:
        walk_steps.go(name)
        if block:
            st.session_state[f"walk-layer-{count}"] = min(block, count) - 1

    parts = [] if run is None or not subject.is_real else parts_of(run.experiment)
    codes = {
        (part.module, -1 if part.head is None else part.head): part.code
        for part in parts
        if part.kind in ("head", "sublayer")
    }
    model_picture.draw(
        whole(subject, example),
        theme=state.theme(),
        title=_("Walk through"),
        on_step=explain,
        codes=codes,
        out=() if run is None else source.parts_out(run),
        on_knock=source.knock,
        key="walk-model",
    )


page()
