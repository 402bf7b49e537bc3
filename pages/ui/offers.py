"""What stands where nothing is trained yet: why, and a button for each preset that fills it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from pages.i18n import _
from pages.ui import run_actions, run_time, visitors
from pages.ui.typed import escape
from tfm_core.presets import PRESETS


def presets(
    sentence: str, names: Sequence[str], *, key: str, others: Callable[[], None] | None = None
) -> None:
    """Show a sentence and a button for each preset, the first one first to be pressed.

    key: begins the keys of the buttons, which end with the preset's name. others: draws further
    buttons into the same row.
    """
    why_not = visitors.why_not()
    with st.container(border=True, horizontal_alignment="center", gap="medium"):
        st.markdown(_(sentence), width="content")
        if why_not:
            st.caption(f":material/lock: {escape(why_not)}", width="content")
        with st.container(horizontal=True, horizontal_alignment="center"):
            for index, name in enumerate(names):
                if st.button(
                    _("Train “{name}”, {time}", name=_(PRESETS[name].label), time=takes(name)),
                    type="secondary" if index else "primary",
                    icon=":material/play_arrow:",
                    key=f"{key}-{name}",
                    disabled=bool(why_not),
                ):
                    run_actions.start_preset(name)
            if others is not None:
                others()


def takes(name: str) -> str:
    """Return how long the training of a preset takes on this machine, in words."""
    return run_time.takes(PRESETS[name].experiment)


def takes_now(name: str) -> str:
    """Return the same, and whether the computer is busy."""
    return run_time.takes_now(PRESETS[name].experiment)
