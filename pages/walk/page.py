"""Walk through: one forward pass, step by step, with its shapes, its code and its numbers."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import show
from pages.ui.address import view_link
from pages.ui.fact_line import fact_line
from pages.ui.model import walk_steps
from pages.ui.settings import names_choice
from pages.ui.state import body
from pages.walk import picture, source, tensor


def page() -> None:
    show.header("walk")
    body(_walk)


def _walk() -> None:
    facts, choices = fact_line("walk")
    with facts, st.container(horizontal=True, vertical_alignment="center"):
        line = st.container(width="stretch")
        field = st.empty()
    above = st.container()  # of warnings, too
    try:
        with choices, view_link.warnings_in(above):
            chosen = source.pick()
        with st.spinner(_("One forward pass …"), show_time=False):
            walked = source.walked(chosen, field)
    except ValueError as error:
        show.problem(error)
        return
    subject = walked.subject
    with choices:
        example = tensor.example_picker(subject)
        layer = tensor.layer_picker(subject)
        with view_link.warnings_in(above):
            scheme = names_choice.choice()
    line.caption(" ".join((_(subject.note), tensor.example_name(subject, example))))
    with above:
        picture.whole_model(walked, chosen, example)
    from tfm_core.inspect.walk.build import walk

    try:
        steps = walk(subject, layer=layer, example=example)
    except ValueError as error:
        show.problem(error)
        return
    names = [step.name for step in steps]
    number, problem = walk_steps.current(names)
    view_link.warn(problem)
    step = steps[number - 1]
    walk_steps.navigation(steps, number)
    st.header(f"{number} · {_(step.title)}", anchor=False)
    if step.block:
        st.caption(_("Inside `{block}`", block=step.block))
    left, right = st.columns(2, gap="medium")
    with left:
        above = st.container()
        walk_steps.ask(step, walked.name, example)
        is_revealed = walk_steps.is_step_revealed(step, walked.name, example)
        with above:  # drawn last: a correct answer reveals the result above
            walk_steps.shapes(step, subject, example, is_revealed=is_revealed)
            walk_steps.explanation(step, subject, names, is_revealed=is_revealed)
            walk_steps.named(step, subject, scheme, layer)
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


page()
