"""Pictures: a zip of folders by class, or IDX files; what was read, and what is remarkable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.i18n import N_, _, ngettext
from pages.own_data import shelf, state
from pages.ui import show
from pages.ui.typed import escape
from pages.ui.uploaded import MOST_MEGABYTES
from tfm_core.data.own import pictures_set
from tfm_core.data.own.pictures import FITS, SIZES, Form, Pictures, read_pictures
from tfm_core.data.own.pictures_findings import counts, duplicates, findings
from tfm_core.data.own.pictures_set import Split, prepare, shared_out, without_doubles
from tfm_core.data.own.sets import MOST_NAME, OwnSet
from tfm_core.data.own.shapes import as_zip
from tfm_core.plots import own_data as plots

_ICONS = {
    "problem": ":red[:material/error:]",
    "warning": ":orange[:material/warning:]",
    "note": ":material/info:",
}
_COLOURS = {True: N_("Grey"), False: N_("Colour")}
_BY = {"file": N_("As the folders say"), "seed": N_("Drawn by a seed")}


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """What was read of an upload and is not kept yet; problem: why nothing was, in a sentence."""

    name: str
    pictures: Pictures | None
    problem: str = ""


def add(kind: str) -> Draft | None:
    """Ask for files and what they should become; return what was read, None before an upload."""
    with st.container(border=True, gap="small"):
        st.header(_("Add your pictures"), anchor=False)
        files = st.file_uploader(
            _("A zip with a folder for each class, or IDX files"),
            accept_multiple_files=True,
            key=state.upload_key("pictures"),
            max_upload_size=MOST_MEGABYTES,
            help=_(
                "`cat/1.png`, `dog/2.jpg`; with `train/cat/…` and `test/cat/…` the test is yours. "
                "IDX is the format of MNIST: a file of pictures and one of labels, also packed as "
                ".gz. At most {most} MB; nothing leaves this machine."
            ).format(most=MOST_MEGABYTES),
        )
        form = _form()
    if not files:
        return None
    named = files[0].name
    try:
        key = (tuple(file.file_id for file in files), form)
        found = state.read_once(
            key, lambda: read_pictures([(file.name, file.getvalue()) for file in files], form)
        )
    except ValueError as error:
        return Draft(named, None, _(error))
    return Draft(named, found)


def _form() -> Form:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        size = st.selectbox(
            _("Pixels to a side"),
            SIZES,
            index=SIZES.index(28),
            key="own-data-size",
            persist_state="session",
            width=130,
            help=_("All pictures are made squares of this size. Smaller ones are learned faster."),
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
        _("What is no square"),
        list(FITS),
        format_func=lambda name: _(FITS[name].label),
        default="middle",
        required=True,
        key="own-data-fit",
        persist_state="session",
        help="\n".join(f"- **{_(fit.label)}**: {_(fit.help)}" for fit in FITS.values()),
    )
    return Form(size or 28, is_grey is not False, fit or "middle")


def preview(draft: Draft) -> None:
    """Show what was read, ask for the split and a name, and offer to keep it."""
    st.header(_("Read from {name}").format(name=escape(draft.name[:80])), anchor=False)
    if draft.pictures is None:
        show.problem(draft.problem)
        st.button(
            _("Choose other files"), key="own-data-again", icon=":material/undo:",
            on_click=state.begin_anew,
        )  # fmt: skip
        return
    pictures = draft.pictures
    split = _split(pictures)
    if duplicates(pictures, shared_out(pictures, split)).n_again and st.toggle(
        _("Take doubles out: of pictures with the very same pixels only the first is kept"),
        key="own-data-doubles",
    ):
        pictures = without_doubles(pictures)
    parts = shared_out(pictures, split)
    said = findings(pictures, parts)
    can_keep = not any(one.level == "problem" for one in said)
    _keep(pictures, split, draft.name, can_keep=can_keep)
    for one in said:
        st.markdown(f"{_ICONS[one.level]} {escape(_(one.sentence))}")
    _summary(pictures)
    _strips(pictures, counts(pictures, parts))


def look(own: OwnSet) -> None:
    """Show the pictures of a set that is kept."""
    try:
        found = pictures_set.as_pictures(own)
        parts = pictures_set.arrays(own).parts
    except ValueError as error:
        show.problem(error)
        return
    _strips(found, counts(found, parts))
    words = _("Download as a zip, a folder for each class")
    shelf.download(words, lambda: as_zip(found), name=f"{own.id}.zip", mime="application/zip")


def nothing_yet() -> None:
    """Show nothing: a set of pictures comes along."""


def _split(pictures: Pictures) -> Split:
    """Ask how the test is chosen."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        by = "seed"
        if pictures.parts is not None:
            by = str(
                st.segmented_control(
                    _("Test"),
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
            _("Share of the test, %"), 5, 40, 15, 5, key="own-data-share", persist_state="session",
            width=260, help=_("Taken from each class alike, and never learned from."),
        )  # fmt: skip
        seed = st.number_input(
            _("Seed of the test"), 0, 9999, 0, key="own-data-seed", persist_state="session",
            width=150, help=_("The same seed draws the same test."),
        )  # fmt: skip
    return Split(seed=int(seed), share=share / 100)


def _keep(pictures: Pictures, split: Split, file: str, *, can_keep: bool) -> None:
    first = file.rpartition(".")[0] or file
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = st.text_input(
            _("Name of the set"),
            key=state.name_key("pictures", first[:MOST_NAME]),
            max_chars=MOST_NAME,
            width=320,
        )
        st.button(
            _("Keep this set"),
            type="primary",
            icon=":material/save:",
            key="own-data-keep",
            disabled=not can_keep,
            help=_("It is written beside the runs of this machine; then it can be learned."),
            on_click=_kept,
            args=(pictures, (name or "").strip() or _("My pictures"), split),
        )


def _kept(pictures: Pictures, name: str, split: Split) -> None:
    shelf.keep(lambda: prepare(pictures, name, split))


def _summary(pictures: Pictures) -> None:
    n, channels, size, _width = pictures.images.shape
    words = ngettext(
        "**{n}** picture of **{classes}** classes, {size} x {size} pixels, {colour}.",
        "**{n}** pictures of **{classes}** classes, {size} x {size} pixels, {colour}.",
        n,
    ).format(
        n=f"{n:,}",
        classes=len(pictures.class_names),
        size=size,
        colour=_("grey") if channels == 1 else _("in colour"),
    )
    st.markdown(" ".join([words, *(escape(_(note)) for note in pictures.notes)]))
    if pictures.n_left_out:
        label = ngettext(
            "{n} file was left out", "{n} files were left out", pictures.n_left_out
        ).format(n=f"{pictures.n_left_out:,}")
        with st.expander(label, icon=":material/block:"):
            for sentence in pictures.left_out:
                st.caption(escape(_(sentence)))
            more = pictures.n_left_out - len(pictures.left_out)
            if more:
                st.caption(_("And {n} more.").format(n=f"{more:,}"))


def _strips(pictures: Pictures, table: npt.NDArray[np.int64]) -> None:
    """Show some pictures of each class, and how many each has in each split."""
    names = pictures.class_names
    st.html(plots.strips(pictures.images, pictures.labels, names))
    if len(names) > plots.MOST_STRIPS:
        st.caption(_("And {n} more classes.").format(n=len(names) - plots.MOST_STRIPS))
    show.figure(
        plots.balance(names, table),
        _("How many pictures each class has, and for what. Uneven classes flatter the accuracy."),
        key="own-data-balance",
    )
