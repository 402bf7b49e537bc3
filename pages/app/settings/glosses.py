"""Glosses below translated words: one switch for all pages, which a session keeps."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.i18n import _
from tfm_core.choices.config import Experiment
from tfm_core.data.text.english_korean import glosses_of

_CHOICE = "glosses"


def are_on(experiment: Experiment) -> bool:
    """Return whether to show them: by default where the browser speaks another language."""
    known = glosses_of(experiment)
    if known is None:
        return False
    chosen = st.session_state.get(_CHOICE)
    if isinstance(chosen, bool):
        return chosen
    return not (st.context.locale or "").lower().startswith(known.language)


def switch_on(chosen: bool) -> None:
    """Keep the choice for this session."""
    st.session_state[_CHOICE] = chosen


def shown(experiment: Experiment) -> Mapping[str, str]:
    """Return the gloss of each target token; none while they are off or nothing is translated."""
    known = glosses_of(experiment)
    return {} if known is None or not are_on(experiment) else known.words


def switch(experiment: Experiment, *, key: str) -> None:
    """Draw the switch where an experiment has glosses."""
    if glosses_of(experiment) is None:
        return
    st.session_state[key] = are_on(experiment)
    st.toggle(
        _("Glosses"),
        key=key,
        on_change=lambda: switch_on(bool(st.session_state[key])),
    )
