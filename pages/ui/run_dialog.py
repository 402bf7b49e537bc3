"""A dialog about one run, asked for by a button of its menu: the next drawing opens it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from pages.i18n import _
from pages.ui import runs_access, state
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound


@dataclass(frozen=True, slots=True)
class RunDialog:
    """of: where the session keeps the run that it is about. title and icon: at its top.

    body: draws what is in it. forgets: what else of the session goes when it is left.
    """

    of: str
    title: str
    icon: str
    body: Callable[[Run], None]
    width: Literal["small", "medium", "large"] = "small"
    forgets: tuple[str, ...] = ()

    def ask(self, run_id: str) -> None:
        """Open it on a run, from the next run of the page on, until it is left."""
        st.session_state[self.of] = run_id
        state.close_menus()

    def draw(self) -> None:
        """Draw it where it was asked for; once in a page, outside of what ticks."""
        run_id = st.session_state.get(self.of)
        if run_id is None:
            return
        try:
            run = runs_access.store().get(run_id)
        except RunNotFound:
            self.leave()
            return
        if run.problem is None:
            opened = st.dialog(
                _(self.title), width=self.width, icon=self.icon, on_dismiss=self.leave
            )
            opened(self.body)(run)

    def leave(self) -> None:
        """Close it at the next drawing."""
        for key in (self.of, *self.forgets):
            st.session_state.pop(key, None)
