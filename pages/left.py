"""Left: what a page asked for before it was left is not drawn on the page after it.

A part that draws itself again by a timer goes on asking until its browser hears that the server
has opened another page. Streamlit then tells the browser that the old page is open once more, at
which that takes away all it shows, and finds nothing to draw there: the page would stay blank.
"""

from __future__ import annotations

from streamlit.runtime import app_session
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner


class _Runner(ScriptRunner):
    """What runs the scripts of one session; parts only of the page that is open."""

    def _run_script(self, rerun_data: RerunData) -> None:
        asks = rerun_data.page_script_hash
        is_part = bool(rerun_data.fragment_id_queue)
        if not is_part or asks == self._pages_manager.current_page_script_hash:
            super()._run_script(rerun_data)


def forget_left() -> None:
    """Let all sessions of this process do so from now on."""
    app_session.ScriptRunner = _Runner  # type: ignore[attr-defined]
