"""Own pictures: upload, preview and findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from pages.i18n import N_, _, ngettext, paragraph
from pages.own_data import shelf, state
from pages.ui import show
from pages.ui.typed import MAX_MEGABYTES, escape
from tfm_core.config.own_pictures import MAX_NAME as MAX_CLASS_NAME
from tfm_core.data.own.build_examples import as_zip
from tfm_core.data.own.encodings import ENCODINGS
from tfm_core.data.own.pictures import FITS, SIZES, PictureForm, Pictures, ReadingChoices
from tfm_core.data.own.pictures_set import (
    Split,
    counts,
    duplicates,
    findings,
    pictures_of,
    prepare,
    renamed,
    split_parts,
    without_duplicates,
)
from tfm_core.data.own.pictures_zip import read_pictures
from tfm_core.data.own.sets import OwnSet
from tfm_core.plots.examples import own_data as plots

_ICONS = {
    "problem": ":red[:material/error:]",
    "warning": ":orange[:material/warning:]",
    "note": ":material/info:",
}
_CHOICES = ("folders", "encoding", "is_turned")  # as ``ReadingChoices`` has them
_UNDERSTOOD = "own-data-understood"
_FOLDERS = {"splits": N_("Splits"), "classes": N_("Classes")}
_MAX_NAMES = 3
_COLOURS = {True: N_("Grey"), False: N_("Colour")}
_BY = {"file": N_("As named"), "seed": N_("Random")}


@dataclass(frozen=True, slots=True, eq=False)
class PictureUpload:
    """An upload that is not saved yet. problem: why nothing was read."""

    name: str
    pictures: Pictures | None
    problem: str = ""


def add(kind: str) -> PictureUpload | None:
    """Ask for files and options; return what was read, or None before an upload."""
    with st.container(border=True, gap="small"):
        st.header(_("Add your pictures"), anchor=False)
        files = st.file_uploader(
            _("Zip, IDX, npz or CSV"),
            accept_multiple_files=True,
            key=state.upload_key("pictures"),
            max_upload_size=MAX_MEGABYTES,
            help=paragraph("own-data/picture-files", most=MAX_MEGABYTES),
        )
        st.caption(paragraph("own-data/picture-limit", size=4 * max(SIZES)))
        with st.expander(_("Options"), icon=":material/tune:"):
            form = _form()
        if not files:
            return None
        name = state.common_name([file.name for file in files])
        upload = ",".join(file.file_id for file in files)
        choices = ReadingChoices(
            *(st.session_state.get(f"own-data-{name}-{upload}") for name in _CHOICES)
        )
        try:
            pictures = state.read_once(
                (upload, form, choices),
                lambda: read_pictures(
                    [(file.name, file.getvalue()) for file in files], form, choices
                ),
            )
        except ValueError as error:
            _ask(upload)
            return PictureUpload(name, None, _(error))
        st.session_state[_UNDERSTOOD] = upload, pictures.understood, pictures.folder_names
        _ask(upload)
    return PictureUpload(name, pictures)


def _ask(upload: str) -> None:
    """Ask how to read an ambiguous upload; the guess is preselected."""
    last_upload, understood, folders = st.session_state.get(_UNDERSTOOD, ("", ReadingChoices(), ()))
    if last_upload != upload:
        return
    keys = {name: f"own-data-{name}-{upload}" for name in _CHOICES}
    if understood.folders is not None:
        st.segmented_control(
            _("Meaning of the folders {names}", names=escape(_listed(folders))),
            list(_FOLDERS),
            format_func=lambda name: _(_FOLDERS[name]),
            default=understood.folders,
            required=True,
            key=keys["folders"],
        )
    if understood.encoding is not None:
        shelf.encoding_picker(
            _("File name encoding"), ENCODINGS, understood.encoding, key=keys["encoding"]
        )
    if understood.is_turned is not None:
        st.toggle(
            _("Rotate pictures"),
            understood.is_turned,
            key=keys["is_turned"],
            help=_("Swaps rows and columns, as EMNIST needs."),
        )


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"“{name}”" for name in names[:_MAX_NAMES])
    more = len(names) - _MAX_NAMES
    return _("{names} and {n} more", names=listed, n=more) if more > 0 else listed


def _form() -> PictureForm:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        size = st.selectbox(
            _("Pixels per side"),
            SIZES,
            index=SIZES.index(28),
            key="own-data-size",
            persist_state="session",
            width=130,
            help=_("Smaller trains faster."),
        )
        is_grey = st.segmented_control(
            _("Colour"),
            list(_COLOURS),
            format_func=lambda one: _(_COLOURS[one]),
            default=True,
            required=True,
            key="own-data-grey",
            persist_state="session",
        )
    fit = st.segmented_control(
        _("Non-square images"),
        list(FITS),
        format_func=lambda name: _(FITS[name].label),
        default="middle",
        required=True,
        key="own-data-fit",
        persist_state="session",
        help="\n".join(f"- **{_(fit.label)}**: {_(fit.help)}" for fit in FITS.values()),
    )
    return PictureForm(size or 28, is_grey is not False, fit or "middle")


def preview(draft: PictureUpload) -> None:
    st.header(_("Read from {name}", name=escape(draft.name[:80])), anchor=False)
    if draft.pictures is None:
        show.problem(draft.problem)
        st.button(
            _("Choose other files"),
            key="own-data-again",
            icon=":material/undo:",
            on_click=state.begin_anew,
        )
        return
    settings, messages = st.container(), st.container()
    named = _renamed(draft.pictures)
    with settings:
        pictures, split = _set(named or draft.pictures)
        parts = split_parts(pictures, split)
        notes = findings(pictures, parts)
        is_sound = named is not None and all(note.level != "problem" for note in notes)
        shelf.save_row(
            "pictures",
            draft.name.rpartition(".")[0] or draft.name,
            lambda name: prepare(pictures, name or _("My pictures"), split),
            can_save=is_sound,
        )
    with messages:
        for note in notes:
            st.markdown(f"{_ICONS[note.level]} {escape(_(note.sentence))}")
    _summary(pictures)
    _strips(pictures, counts(pictures, parts))


def _set(pictures: Pictures) -> tuple[Pictures, Split]:
    split = _split(pictures)
    if duplicates(pictures, split_parts(pictures, split)).n_again and st.toggle(
        _("Drop duplicate pictures"),
        key="own-data-doubles",
    ):
        pictures = without_duplicates(pictures)
    return pictures, split


def _renamed(pictures: Pictures) -> Pictures | None:
    """Ask for class names; return the renamed pictures, or None if the names are invalid."""
    n_each = np.bincount(pictures.labels, minlength=len(pictures.class_names))
    names = list(pictures.class_names)
    with st.expander(_("Rename, merge or drop classes"), icon=":material/edit:"):
        st.caption(_("Equal names merge; an empty name drops a class."))
        edited = st.data_editor(
            pd.DataFrame({"class": names, "n": n_each, "name": names}),
            column_config={
                "class": st.column_config.TextColumn(_("Class"), disabled=True),
                "n": st.column_config.NumberColumn(_("Pictures"), disabled=True),
                "name": st.column_config.TextColumn(_("Name"), max_chars=MAX_CLASS_NAME),
            },
            hide_index=True,
            height=min(35 * (len(names) + 1) + 3, 320),
            key=f"own-data-classes-{hash(pictures.class_names)}",
        )
        typed = edited["name"].fillna("").astype(str).tolist()  # an emptied cell is NaN
        try:
            return pictures if typed == names else renamed(pictures, typed)
        except ValueError as error:
            show.problem(error)
            return None


def saved(own: OwnSet) -> None:
    try:
        pictures, parts = pictures_of(own)
    except ValueError as error:
        show.problem(error)
        return
    _strips(pictures, counts(pictures, parts))
    words = _("Download as zip")
    shelf.download(words, lambda: as_zip(pictures), name=f"{own.id}.zip", mime="application/zip")


def nothing_yet() -> None:
    """Show nothing: a set of pictures comes along."""


def _split(pictures: Pictures) -> Split:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        by = "seed"
        if pictures.parts is not None:
            by = str(
                st.segmented_control(
                    _("Splits"),
                    list(_BY),
                    format_func=lambda name: _(_BY[name]),
                    default="file",
                    required=True,
                    key="own-data-by",
                )
            )
        if by == "file":
            return Split(by="file")
        share = st.slider(
            _("Test share, %"),
            5,
            40,
            15,
            5,
            key="own-data-share",
            persist_state="session",
            width=260,
            help=_("The same share of each class."),
        )
        seed = st.number_input(
            _("Test seed"),
            0,
            9999,
            0,
            key="own-data-seed",
            persist_state="session",
            width=150,
        )
    return Split(seed=int(seed), share=share / 100)


def _summary(pictures: Pictures) -> None:
    n, channels, size, _width = pictures.images.shape
    n_classes = len(pictures.class_names)
    parts = [
        ngettext("**{n}** picture", "**{n}** pictures", n, n=f"{n:,}"),
        ngettext("**{n}** class", "**{n}** classes", n_classes, n=n_classes),
        _("{size} × {size} pixels", size=size),
        _("grey") if channels == 1 else _("colour"),
    ]
    notes = (escape(_(note)) for note in pictures.notes)
    st.markdown("  \n".join([" · ".join(parts), *notes]))
    if pictures.n_left_out:
        label = ngettext(
            "{n} entry skipped",
            "{n} entries skipped",
            pictures.n_left_out,
            n=f"{pictures.n_left_out:,}",
        )
        is_short = len(pictures.left_out) <= 3
        with st.expander(label, icon=":material/block:", expanded=is_short):
            for sentence in pictures.left_out:
                st.caption(escape(_(sentence)))
            if pictures.n_left_out > len(pictures.left_out):
                st.caption(_("Only the first are listed."))


def _strips(pictures: Pictures, table: npt.NDArray[np.int64]) -> None:
    names = pictures.class_names
    st.html(plots.strips(pictures.images, pictures.labels, names))
    if len(names) > plots.MAX_STRIPS:
        st.caption(_("And {n} more classes.", n=len(names) - plots.MAX_STRIPS))
    show.figure(
        plots.balance(names, table),
        _("Pictures per class and split."),
        key="own-data-balance",
    )
