"""Open a model that was trained elsewhere: a Hugging Face folder becomes a run."""

from __future__ import annotations

import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

import streamlit as st

from pages.i18n import _
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.files import file_drop
from pages.ui.navigation import page_table
from pages.ui.runs import run_actions
from pages.ui.typed import MAX_MEGABYTES
from tfm_core.runs import settings

_KINDS = (".json", ".safetensors")
_FOLDER, _OPENED = "open-model-folder", "open-model-opened"


def area() -> None:
    """Offer the host's folders, and on a server that is not public a folder of the visitor's."""
    if st.session_state.pop(_OPENED, False):
        st.switch_page(page_table.path_of("train"))
    said = settings.read()
    if visitors.why_not():
        return  # the page shows the reason
    if said.models_dir is not None:
        _listed(said.models_dir)
    elif not said.public:
        file_drop.file_drop(
            _("Open a pretrained model"),
            _("Drop or choose a Hugging Face folder"),
            key="open-model",
            kind=[kind.removeprefix(".") for kind in _KINDS],
            megabytes=MAX_MEGABYTES,
            help=_("No code runs. Larger folders: `python -m tfm_core open PATH`."),
            take=_take,
            is_folder=True,
        )


def _listed(root: Path) -> None:
    from tfm_core.export.opening import folders_in, size_of

    folded = st.expander(
        _("Open a pretrained model"),
        icon=":material/folder_open:",
        key="open-model-listed",
        on_change="rerun",
    )
    if not folded.open:
        return
    with folded:
        folders = folders_in(root)
        if not folders:
            st.caption(_("The host’s folder holds no model."))
            return
        name = st.selectbox(_("Folder"), list(folders), key=_FOLDER)
        try:
            st.caption(_(size_of(folders[name])))
        except (ValueError, OSError) as error:
            show.problem(error)
            return
        if st.button(_("Open {name}", name=name), type="primary", key="open-model-open"):
            try:
                _open(folders[name], name)
            except (ValueError, OSError) as error:
                show.problem(error)
            else:
                st.rerun()


def _take(files: list[Any]) -> None:
    """Open an uploaded folder. Raises ValueError and OSError."""
    with tempfile.TemporaryDirectory() as place:
        name = ""
        for file in files:
            path = PurePosixPath(file.name.replace("\\", "/"))
            name = name or (path.parts[0] if len(path.parts) > 1 else "")
            if len(path.parts) <= 2 and path.suffix in _KINDS:
                (Path(place) / path.name).write_bytes(file.getbuffer())
        _open(Path(place), name or _("Pretrained"))


def _open(folder: Path, name: str) -> None:
    """Open a folder, so that the next rerun shows the run. Raises ValueError and OSError."""
    bar = st.progress(0.0, _("Checking the folder"))

    def show_progress(share: float, words: str) -> None:
        bar.progress(share, _(words))

    try:
        run = run_actions.open_folder(folder, show_progress, name=name)
    finally:
        bar.empty()
    state.set_current_run(run.id)
    st.session_state[_OPENED] = True
