"""Runs from elsewhere: an exported zip, a look file, or a Hugging Face folder becomes a run."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.navigation import page_table
from pages.app.runs import run_actions, runs_access
from pages.app.settings import controls
from pages.app.typed import MAX_MEGABYTES, escape
from pages.i18n import _
from pages.server.streamlit_internals import free_uploads
from tfm_core import settings
from tfm_core.data.user_data import sets
from tfm_core.runs import own_sets
from tfm_core.runs.labels import MAX_NAME
from tfm_core.runs.run import Run

MAX_UNPACKED = 200_000_000
"""Bytes that a zip may unpack to which a visitor brings."""
_IMPORTED, _LOOK = "bring-run", "safetensors"
_KINDS = ("json", "safetensors", "txt")
_MAX_DEPTH = 3  # a file of a folder inside the dropped one
_OPENED = "open-model-opened"


def area(offers: DeltaGenerator) -> None:
    """Take an exported run or a look, and, on a server that is not public, a folder.

    offers: the place of the buttons; what is refused is said where the page stands.
    """
    if st.session_state.pop(_OPENED, False):
        st.switch_page(page_table.path_of("train"))
    if visitors.why_not():
        return  # the page shows the reason
    _file_drop(
        offers,
        _("Import a run"),
        _("Drop or choose an exported zip or a look file"),
        key="bring",
        kind=["zip", _LOOK],
        help=_(
            "Runs no code. For larger files, use `python -m tfm_core import ZIP` or `open LOOK`."
        ),
        take=_take_file,
    )
    _imported_row()
    if not settings.read().public:
        _file_drop(
            offers,
            _("Open a pretrained model"),
            _("Drop or choose a Hugging Face folder"),
            key="open-model",
            kind=list(_KINDS),
            help=_("Runs no code. For larger folders, use `python -m tfm_core open PATH`."),
            take=_take_folder,
            is_folder=True,
        )


def _file_drop(
    offers: DeltaGenerator,
    title: str,
    label: str,
    *,
    key: str,
    kind: list[str],
    help: str,
    take: Callable[[Any], None],
    is_folder: bool = False,
) -> None:
    """Draw the uploader behind a button; pass a dropped file to ``take``, then show an empty one.

    take: raises ValueError or OSError to refuse a file. kind: the file endings to offer.
    is_folder: a folder is dropped, and ``take`` gets a list of its files.
    """
    error_key, round_key = f"{key}-error", f"{key}-round"
    refused, number = st.session_state.get(error_key), st.session_state.get(round_key, 0)
    if refused:
        controls.error_text(refused)
    # new after each file: closed
    with offers, st.popover(title, icon=":material/upload_file:", key=f"{key}-{number}"):
        file: Any = st.file_uploader(
            label,
            type=kind,
            accept_multiple_files="directory" if is_folder else False,
            key=f"{key}-file-{number}",
            max_upload_size=MAX_MEGABYTES,
            help=help,
        )
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


def _imported_row() -> None:
    run_id = st.session_state.get(_IMPORTED)
    if run_id is None:
        return
    try:
        run = runs_access.store().get(run_id)
    except ValueError:
        run = None
    if run is None or run.id == state.current_run_id():
        st.session_state.pop(_IMPORTED, None)
        return
    name = escape(run.meta.name)
    words = _("Imported “{name}”. All files are intact.", name=name)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", border=True, key="bring-came"
    ):
        st.markdown(f":material/move_to_inbox: {words}", width="stretch")
        is_look = not run.problem and run.status.state == "opened"
        show.link(
            "attention" if is_look else "train",
            _("Look inside {name}", name=name) if is_look else _("Watch {name}", name=name),
            {"run": run.id},
            icon=":material/visibility:" if is_look else ":material/play_arrow:",
        )


@contextmanager
def _progress(words: str) -> Iterator[Callable[[float, str], None]]:
    """Show a bar while a file is read, and yield what hears how far that is, in words."""
    bar = st.progress(0.0, words)

    def hear(share: float, words: str) -> None:
        bar.progress(share, _(words))

    try:
        yield hear
    finally:
        bar.empty()


def _take_file(file: Any) -> None:
    """Import a zip or a look file. Raises ValueError and OSError; nothing is left then."""
    if file.name.lower().endswith(f".{_LOOK}"):
        run = _opened_look(file.name, file.getbuffer())
    else:
        with _progress(_("Reading the zip")) as progress:
            run = _imported(io.BytesIO(file.getvalue()), progress)
    st.session_state[_IMPORTED] = run.id


def _imported(file: io.BytesIO, progress: Callable[[float, str], None]) -> Run:
    from tfm_core.export.importer import import_run

    visitor, queue, store = run_actions.acting_visitor(), runs_access.queue(), runs_access.store()
    existing = {own.id for own in own_sets.listed(store, visitor)}
    keep = partial(own_sets.keep, store=store, visitor=visitor, settings=settings.read())

    def discard(run: Run) -> None:
        if (set_id := sets.set_of(run.experiment.task)) not in existing:
            own_sets.discard(set_id, store=store, visitor=visitor)
        store.discard(run)

    read = partial(
        import_run,
        file,
        store,
        limits=queue.limits,
        most=MAX_UNPACKED,
        progress=progress,
        keep=keep,
    )
    return run_actions.admitted(read, queue.admit, discard)


def _opened_look(name: str, content: memoryview) -> Run:
    from tfm_core.looking.file import load
    from tfm_core.looking.opening import check_room, open_look
    from tfm_core.looking.seen import Seen

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "look.safetensors"
        path.write_bytes(content)
        look = load(path, Seen, called=name, check=check_room)
    opened = partial(open_look, look, runs_access.store(), name=Path(name).stem[:MAX_NAME])
    return run_actions.admitted(opened, runs_access.queue().admit)


def _take_folder(files: list[Any]) -> None:
    """Open an uploaded folder, so that the next rerun shows the run; raises as ``_take_file``."""
    from tfm_core.export.opening import open_run, size_of

    with tempfile.TemporaryDirectory() as place:
        folder = root = Path(place) / _("Pretrained")
        root.mkdir()
        for file in files:
            path = PurePosixPath(file.name.replace("\\", "/"))
            target = (root / path).resolve()
            is_inside = target.is_relative_to(root.resolve())
            if not is_inside or len(path.parts) > _MAX_DEPTH or path.suffix[1:] not in _KINDS:
                continue
            folder = root.joinpath(*path.parts[:-1][:1])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.getbuffer())
        words = size_of(folder)
        with _progress(_("Checking the folder")) as progress:
            opened = partial(open_run, folder, runs_access.store(), progress=progress)
            run = run_actions.admitted(opened, runs_access.queue().admit)
    st.toast(escape(_(words)), icon=":material/info:", duration="long")
    state.set_current_run(run.id)
    st.session_state[_OPENED] = True
