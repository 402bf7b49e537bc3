"""Walk through: one forward pass, step by step, with its shapes, its code and its numbers."""

from __future__ import annotations

import streamlit as st

from pages.ui import show, walk_source, walk_state, walk_step, walk_tensor
from pages.ui.words import _


def page() -> None:
    """Show one step of the chosen model's forward pass."""
    show.header("walk")
    try:
        with st.spinner(_("One forward pass …"), show_time=False):
            name, subject = walk_source.pick()
    except ValueError as error:
        show.problem(str(error))
        return
    st.caption(subject.note)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        example = walk_tensor.example_picker(subject)
        layer = walk_tensor.layer_picker(subject)
    from tfm_core.inspect.walk import walk

    steps = walk(subject, layer=layer, example=example)
    number, problem = walk_state.current([step.number for step in steps])
    if problem is not None:
        st.warning(problem, icon=":material/link_off:")
    step = next(step for step in steps if step.number == number)
    walk_step.navigation(steps, number)
    st.subheader(f"{step.number} · {_(step.title)}", anchor=False)
    told, seen = st.columns(2, gap="medium")
    with told:
        place = st.container()
        walk_step.words(step, subject)
        walk_step.question(step, name, example)
        with place:  # drawn last: an answer just given reveals the shapes
            walk_step.shapes(step, subject, with_after=walk_step.is_guessed(step, name, example))
    with seen:
        if step.name == "patches":
            walk_tensor.picture(subject, example)
        walk_tensor.tensor(step, subject, example)
        if step.name == "softmax":
            family = getattr(subject.config, "family", "")
            stack = "decoder" if family == "decoder-only" else "encoder"
            module = f"{stack}.layers.{layer}.self_attention"
            walk_tensor.mistake(subject, step, module, example)


page()
