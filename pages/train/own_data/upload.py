"""An upload before it is saved: its options, and the data that were read."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import streamlit as st

from pages.app import state as session
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.address.parameters import Text
from pages.app.navigation import ticks
from pages.app.runs import run_actions, runs_access
from pages.app.typed import MAX_MEGABYTES
from pages.i18n import N_, _, paragraph
from pages.server.streamlit_internals import UploadedFile, free_uploads
from tfm_core import settings
from tfm_core.choices.variants.tasks import UNITS
from tfm_core.data.user_data import kinds
from tfm_core.data.user_data.kinds import SET_KINDS
from tfm_core.data.user_data.pictures import FITS, SIZES, PictureForm
from tfm_core.data.user_data.pictures_zip import inspect_pictures
from tfm_core.data.user_data.sets import MAX_NAME, UserSet
from tfm_core.data.user_data.texts import LONGEST, inspect_text
from tfm_core.data.user_data.tokens import CUTS
from tfm_core.data.user_data.uploads import ColumnLayout, ReadAs, Report
from tfm_core.runs import own_sets

SCOPE = "own-data"
ROLES = ("first", "second")
"""Roles of the two columns that are read."""
CUT_AT = {"pairs": 0, "labels": LONGEST}
"""Default length of texts in tokens; 0 is no limit, as half a translation is a wrong one."""
_READ = "own-data-read"
_HASH = "own-data-hash"  # of the data: what is chosen for them is forgotten when others are read
_NAMED = "own-data-named"  # key of the name field, and the proposed name
_UPLOADS = "own-data-uploads"  # number of saved sets: the next upload starts empty
_TITLES = {
    "pictures": N_("Add your pictures"),
    "pairs": N_("Add pairs"),
    "labels": N_("Add sentences"),
    "text": N_("Add a text"),
}
_PASTE = {
    "pairs": N_("Paste one pair per line"),
    "labels": N_("Paste one sentence and label per line"),
    "text": N_("Paste a text"),
}
_LIKE = {
    "pairs": "good morning\tguten Morgen\nthank you\tdanke",
    "labels": "I liked every minute\tgood\nnever again\tbad",
    "text": "It was a bright cold day in April …",
}

Files = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class OwnData:
    """The kind of data, and the id of the shown set."""

    kind: str = view.choice(
        N_("Data"),
        {name: SET_KINDS[name] for name in ("pictures", "pairs", "labels", "text")},
        look={"label_visibility": "collapsed"},
    )
    set: str = view.held(Text("", first="", most=40))


@dataclass(frozen=True)
class PictureOptions:
    """The form of pictures."""

    size: str = view.choice(
        N_("Pixels per side"),
        {str(size): str(size) for size in SIZES},
        "28",
        is_list=True,
        help=N_("Smaller trains faster."),
        look={"width": 130},
    )
    colour: str = view.choice(N_("Colour"), {"grey": N_("Grey"), "colour": N_("Colour")})
    fit: str = view.choice(
        N_("Non-square images"),
        {name: fit.label for name, fit in FITS.items()},
        help=lambda: "\n".join(f"- **{_(fit.label)}**: {_(fit.help)}" for fit in FITS.values()),
    )


def shown_set(settings: OwnData, sets: Sequence[UserSet]) -> UserSet | None:
    """Return the set from the link or the last choice, else the first one."""
    own = next((candidate for candidate in sets if candidate.id == settings.set), None)
    if own is None and settings.set:
        show_set("")
        session.rerun()
    return own or next((candidate for candidate in sets if candidate.problem is None), None)


def show_set(set_id: str) -> None:
    view.put(SCOPE, set=set_id)


def add(kind: str) -> Report | None:
    """Ask for data of a kind; return what was read, or None before there is any."""
    with st.container(border=True, gap="small"):
        st.header(_(_TITLES[kind]), anchor=False)
        return _add_pictures(kind) if kind == "pictures" else _add_texts(kind)


def _add_pictures(kind: str) -> Report | None:
    help_text = paragraph(f"own-data/files-{kind}", most=MAX_MEGABYTES)
    files = _files(_("Zip, IDX, npz or CSV"), kind, help_text)
    st.caption(paragraph("own-data/picture-limit", size=4 * max(SIZES)))
    with st.expander(_("Options"), icon=":material/tune:"):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            options = view.ask(PictureOptions, SCOPE)
        form = PictureForm(int(options.size), options.colour == "grey", options.fit)
    if not files:
        return None
    chosen = _chosen(kind, files)
    return read_once(
        (kind, files, form, chosen),
        lambda: inspect_pictures(files, form, chosen, name=_common_name(files)),
    )


def _add_texts(kind: str) -> Report | None:
    pasted = st.text_area(
        _(_PASTE[kind]),
        key=_upload_key(f"paste-{kind}"),
        height=110,
        placeholder=_LIKE[kind],
        help=paragraph(f"own-data/how-{kind}"),
    )
    files = _files(_("Or choose files"), f"file-{kind}", paragraph(f"own-data/files-{kind}"))
    cuts = {**(UNITS if kind == "text" else CUTS)}
    unit = view.one(
        view.choice(
            N_("Tokens"),
            {name: cut.label for name, cut in cuts.items()},
            "words",
            help=lambda: "\n".join(f"- **{_(c.label)}**: {_(c.help)}" for c in cuts.values()),
            of=kind,
        ),
        "unit",
        SCOPE,
    )
    seed, label = 0, _("Your own test file")
    with st.expander(label if kind == "text" else _("Split"), icon=":material/tune:"):
        if kind != "text":
            seed = st.number_input(
                _("Split seed"),
                0,
                9999,
                0,
                key="own-data-text-seed",
                persist_state="session",
                help=_("Draws a tenth each for validation and test."),
            )
        test = _files(label, f"test-{kind}") or None
    raw = files or pasted
    if not raw:
        return None
    name, chosen = _common_name(files) if files else "", _chosen(kind, raw)
    return read_once(
        (kind, name, unit, seed, chosen, raw, test),
        lambda: inspect_text(kind, raw, name=name, unit=unit, seed=seed, test=test, choices=chosen),
    )


def choice_key(choice: str) -> str:
    """Return the key of a choice on how the data are read."""
    return f"own-data-{choice}-{st.session_state[_HASH]}"


def _chosen(kind: str, raw: Files | str) -> ReadAs:
    """Return the chosen ways to read these data."""
    st.session_state[_HASH] = str(hash((kind, raw)))
    names = ("encoding", "merges_labels", "folders", "is_turned")
    chosen = {name: st.session_state.get(choice_key(name)) for name in names}
    first, second, header = (
        st.session_state.get(choice_key(f"column-{name}")) for name in (*ROLES, "header")
    )
    layout = None
    if isinstance(first, int) and isinstance(second, int) and first != second:
        layout = ColumnLayout(first, second, bool(header))
    cut_at = int(st.session_state.get(choice_key("cut_at"), CUT_AT.get(kind, 0)))
    return ReadAs(**chosen, layout=layout, cut_at=max(2, cut_at) if cut_at else None)


def _files(label: str, name: str, help_text: str | None = None) -> Files:
    uploaded = st.file_uploader(
        label,
        accept_multiple_files=True,
        key=_upload_key(name),
        max_upload_size=MAX_MEGABYTES,
        help=help_text,
    )
    return tuple((file.name, file.getvalue()) for file in uploaded)


def _upload_key(name: str) -> str:
    """Return the key of an upload field; a new one after each saved set."""
    return f"own-data-{name}-{st.session_state.get(_UPLOADS, 0)}"


def _common_name(files: Files) -> str:
    """Return the common leading words of file names, else the first name."""
    words = [re.split(r"(?=[-_. ])", name) for name, _content in files]
    shared = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
    return "".join(column[0] for column in shared) or files[0][0]


def example(kind: str) -> Report | None:
    """Return the built-in text, ready to save; sets of other kinds come along."""
    if kind != "text":
        return None
    from tfm_core.data.text.corpus import read_text

    unit = str(st.session_state.get("own-data-text-unit") or "words")
    name = _("Alice in Wonderland, first chapter")
    return inspect_text("text", read_text(), name=name, unit=unit)


def begin_anew() -> None:
    values = [value for key, value in st.session_state.items() if str(key).startswith("own-data-")]
    files = [file for value in values for file in (value if isinstance(value, list) else [value])]
    free_uploads(file for file in files if isinstance(file, UploadedFile))
    st.session_state[_UPLOADS] = st.session_state.get(_UPLOADS, 0) + 1
    st.session_state.pop(_READ, None)


def begin_with(set_id: str) -> None:
    """Show a saved set instead of an upload."""
    begin_anew()
    show_set(set_id)


def read_once(what: Hashable, work: Callable[[], Report]) -> Report:
    """Return ``work()``, cached once per session."""
    cached: tuple[Hashable, Report] | None = st.session_state.get(_READ)
    if cached is None or cached[0] != what:
        cached = st.session_state[_READ] = what, work()
    return cached[1]


def save_row(report: Report) -> None:
    """Ask for a name and offer to save a set. The name is kept until other data are read."""
    key = _upload_key(f"name-{report.kind}")
    if st.session_state.get(_NAMED) != (key, report.name):
        st.session_state[_NAMED] = key, report.name
        st.session_state[key] = report.name
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = st.text_input(_("Data set name"), key=key, max_chars=MAX_NAME, width=320)
        st.button(
            _("Save data set"),
            type="primary",
            icon=":material/save:",
            key="own-data-keep",
            on_click=_keep,
            args=(report, (name or "").strip()),
        )


def _keep(report: Report, name: str) -> None:
    """Save a set and show it; if that fails, say why and keep the upload."""
    try:
        own = own_sets.keep(
            kinds.prepare(report, name=name),
            store=runs_access.store(),
            visitor=visitors.visitor(),
            settings=settings.read(),
            on_evicted=run_actions.notify_deleted,
        )
    except (ValueError, OSError) as error:
        session.notify(_(error))
        return
    begin_with(own.id)
    ticks.mark()
