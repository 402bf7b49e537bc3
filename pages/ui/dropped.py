"""A place to drop a file from elsewhere, folded: what becomes of it, or why nothing does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.i18n import _
from pages.ui import controls, uploaded


def place(
    title: str,
    label: str,
    *,
    key: str,
    megabytes: int,
    help: str,
    take: Callable[[Any], None],
    kind: str | None = None,
) -> None:
    """Draw the place; a file that is dropped is taken, and the place is empty and folded again.

    take: raises ValueError and OSError where it refuses the file, which the place says, unfolded.
    kind: the only ending that the browser offers.
    """
    said, round_key = f"{key}-said", f"{key}-round"
    refused, number = st.session_state.get(said), st.session_state.get(round_key, 0)
    with st.expander(
        title,
        icon=":material/upload_file:",
        expanded=bool(refused),
        key=f"{key}-{number}",  # a new one after each file: folded, unless it was refused
    ):
        file = st.file_uploader(
            label, type=kind, key=f"{key}-file-{number}", max_upload_size=megabytes, help=help
        )
        if refused:
            controls.complaint(refused)
        if file is None:
            return
        st.session_state.pop(said, None)
        try:
            take(file)
        except (ValueError, OSError) as error:
            why = _("{name} was not imported: {why}")
            st.session_state[said] = why.format(name=file.name, why=_(error))
        uploaded.let_go([file])
        st.session_state[round_key] = number + 1  # an empty place for the next one
        st.rerun()
