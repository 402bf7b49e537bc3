"""Open a model that was trained elsewhere: a Hugging Face folder becomes a run."""

from __future__ import annotations

import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

import streamlit as st

from pages.i18n import _
from pages.ui import state
from pages.ui.accounts import visitors
from pages.ui.files import file_drop
from pages.ui.navigation import page_table
from pages.ui.runs import run_actions
from pages.ui.typed import MAX_MEGABYTES
from tfm_core import settings

_KINDS = (".json", ".safetensors", ".txt")
_MAX_DEPTH = 3  # a file of a folder inside the dropped one
_OPENED = "open-model-opened"


def area() -> None:
    """Take a folder of the visitor's, on a server that is not public."""
    if st.session_state.pop(_OPENED, False):
        st.switch_page(page_table.path_of("train"))
    if visitors.why_not():
        return  # the page shows the reason
    if not settings.read().public:
        file_drop.file_drop(
            _("Open a pretrained model"),
            _("Drop or choose a Hugging Face folder"),
            key="open-model",
            kind=[one.removeprefix(".") for one in _KINDS],
            megabytes=MAX_MEGABYTES,
            help=_("No code runs. Larger folders: `python -m tfm_core open PATH`."),
            take=_take,
            is_folder=True,
        )


def _take(files: list[Any]) -> None:
    """Open an uploaded folder. Raises ValueError and OSError."""
    with tempfile.TemporaryDirectory() as place:
        folder = root = Path(place) / _("Pretrained")
        root.mkdir()
        for file in files:
            path = PurePosixPath(file.name.replace("\\", "/"))
            target = (root / path).resolve()
            is_inside = target.is_relative_to(root.resolve())
            if not is_inside or len(path.parts) > _MAX_DEPTH or path.suffix not in _KINDS:
                continue
            folder = root.joinpath(*path.parts[:-1][:1])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.getbuffer())
        _open(folder)


def _open(folder: Path) -> None:
    """Open a folder, so that the next rerun shows the run. Raises ValueError and OSError."""
    bar = st.progress(0.0, _("Checking the folder"))

    def show_progress(share: float, words: str) -> None:
        bar.progress(share, _(words))

    try:
        run = run_actions.open_folder(folder, show_progress)
    finally:
        bar.empty()
    state.set_current_run(run.id)
    st.session_state[_OPENED] = True
