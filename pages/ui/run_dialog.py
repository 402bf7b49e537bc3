"""A dialog about one run, asked for by a button of its menu: the next drawing opens it.

Streamlit draws one dialog at a time and raises an error for a second one, so the session keeps one
key for whichever is open, and forgets it with the page.
"""

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
    """key: its name in the session. title and icon: at its top.

    body: draws what is in it. forgets: what else of the session goes when it is closed.
    """

    key: str
    title: str
    icon: str
    body: Callable[[Run], None]
    width: Literal["small", "medium", "large"] = "small"
    forgets: tuple[str, ...] = ()

    def ask(self, run_id: str) -> None:
        """Open it on a run at the next drawing, in place of any other that is open."""
        self._forget()
        state.open_dialog(self.key, run_id)
        state.close_menus()

    def draw(self) -> None:
        """Draw it where it was asked for; once in a page, outside of what ticks."""
        run_id = state.dialog_run(self.key)
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
        if state.dialog_run(self.key) is not None:
            state.close_dialog()
        self._forget()

    def _forget(self) -> None:
        for key in self.forgets:
            st.session_state.pop(key, None)
