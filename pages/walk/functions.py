"""The functions that a step uses, each run on a small example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from pages.i18n import _

if TYPE_CHECKING:
    from tfm_core.inspect.walk.steps import WalkStep


def used(step: WalkStep) -> None:
    """Show each function of the step's code: what it does, and a call of it with its result."""
    from tfm_core.inspect.walk import functions

    shown = functions.used(step)
    if not shown:
        return
    st.subheader(_("The functions used, each on a small example"), anchor=False)
    for one in shown:
        with st.container(gap="xsmall"):
            st.markdown(f"`{one.function.name}` {_(one.function.says)}")
            st.code(one.session, language="python", wrap_lines=True)
