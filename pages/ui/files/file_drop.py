"""A folded file uploader that imports each file and reports why one was refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.i18n import _
from pages.server.streamlit_internals import free_uploads
from pages.ui.settings import controls


def file_drop(
    title: str,
    label: str,
    *,
    key: str,
    megabytes: int,
    help: str,
    take: Callable[[Any], None],
    kind: str | list[str] | None = None,
    is_folder: bool = False,
) -> None:
    """Draw the uploader; pass a dropped file to ``take``, then show an empty, folded uploader.

    take: raises ValueError or OSError to refuse a file. kind: the only file endings to offer.
    is_folder: a folder is dropped, and ``take`` gets a list of its files.
    """
    error_key, round_key = f"{key}-error", f"{key}-round"
    refused, number = st.session_state.get(error_key), st.session_state.get(round_key, 0)
    with st.expander(
        title,
        icon=":material/upload_file:",
        expanded=bool(refused),
        key=f"{key}-{number}",  # new after each file: folded unless refused
    ):
        file: Any = st.file_uploader(
            label,
            type=kind,
            accept_multiple_files="directory" if is_folder else False,
            key=f"{key}-file-{number}",
            max_upload_size=megabytes,
            help=help,
        )
        if refused:
            controls.complaint(refused)
        if not file:
            return
        st.session_state.pop(error_key, None)
        try:
            take(file)
        except (ValueError, OSError) as error:
            name = file[0].name.partition("/")[0] if is_folder else file.name
            message = _("{name} was not imported: {why}", name=name, why=_(error))
            st.session_state[error_key] = message
        free_uploads(file if is_folder else [file])
        st.session_state[round_key] = number + 1
        st.rerun()
