"""Export: a run as files, each made when its button is pressed."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from pages.components.effects import press
from pages.i18n import N_, _
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.files import film
from pages.ui.runs import runs_access, shown_run
from pages.ui.typed import escape
from tfm_core.data.own.sets import OwnSet
from tfm_core.export.exports import EXPORTS, Export, Progress
from tfm_core.runs import own_sets
from tfm_core.runs.run import Run

_MADE = "take-made"


@dataclass(frozen=True, slots=True)
class Tick:
    """An optional part of a file.

    offered: for which runs. more: how many bytes it adds, None if unknown.
    """

    key: str
    label: str
    help: str
    offered: Callable[[Run], bool] = lambda run: True
    more: Callable[[Run], int | None] = lambda run: None


@dataclass(frozen=True, slots=True)
class Offer:
    """A file to export a run as.

    make: from the run, a progress callback and the keys of ticked options; raises ValueError with a
    message. about: its size in bytes, None if unknown. refusal: why this run cannot be exported so,
    or None.
    """

    key: str
    label: str
    help: str
    icon: str
    mime: str
    name: Callable[[Run], str]
    make: Callable[[Run, Progress, frozenset[str]], bytes]
    about: Callable[[Run], int | None] = lambda run: None
    refusal: Callable[[Run], str | None] = lambda run: None
    ticks: tuple[Tick, ...] = ()


@dataclass(frozen=True, slots=True)
class _Made:
    """The last file that was made in a session. mark: new for each file."""

    run_id: str
    key: str
    name: str
    content: bytes
    mark: str


def _zip(run: Run, progress: Progress, ticked: frozenset[str]) -> bytes:
    from tfm_core.export import bundle

    with_set = "set" in ticked and _set(run) is not None
    with_labels = not visitors.watches(run)
    return bundle.bundle(run, progress, with_set=with_set, with_labels=with_labels, say=_)


def _zip_name(run: Run) -> str:
    from tfm_core.export import bundle

    return bundle.file_name(run)


def _zip_size(run: Run) -> int:
    from tfm_core.export import bundle

    return bundle.estimate(run)


def _set(run: Run) -> OwnSet | None:
    """Return the data set of a run, if it is the visitor's own."""
    from tfm_core.export import bundle

    own = bundle.own_set(run)
    if own is None:
        return None
    mine = own_sets.listed(runs_access.store(), visitors.visitor())
    return own if own.id in {each.id for each in mine} else None


def _page(run: Run, progress: Progress, ticked: frozenset[str]) -> bytes:
    return film.film(run, with_model="model" in ticked, progress=progress)


def _offer(export: Export) -> Offer:
    return Offer(
        export.name,
        export.label,
        export.help,
        export.icon,
        export.mime,
        export.file_name,
        lambda run, progress, ticked: export.make(run, progress),
        film.weights_bytes if export.needs_weights else lambda run: None,
        export.refusal,
    )


OFFERS: tuple[Offer, ...] = (
    Offer(
        "zip",
        N_("Everything (zip)"),
        N_("Settings, metrics, weights and code. Runs imports it."),
        ":material/folder_zip:",
        "application/zip",
        _zip_name,
        _zip,
        _zip_size,
        ticks=(
            Tick(
                "set",
                shown_run.WITH_DATA,
                N_(
                    "Anyone with the zip has the whole data set. Without it: only the examples "
                    "on the run's pages."
                ),
                offered=lambda run: _set(run) is not None,
                more=lambda run: own.n_bytes if (own := _set(run)) else None,
            ),
        ),
    ),
    Offer(
        "page",
        N_("Replay (HTML page)"),
        N_("Curves, answers, heads, events and settings, for any browser, offline. At most 5 MB."),
        ":material/movie:",
        "text/html",
        film.file_name,
        _page,
        ticks=(
            Tick(
                "model",
                N_("Include the model, so that the page can answer"),
                N_("Adds ONNX Runtime and the weights."),
                offered=lambda run: run.has_checkpoint,
                more=film.model_bytes,
            ),
        ),
    ),
    *map(_offer, EXPORTS),
)


def button(run: Run, *, key: str, width: str = "content") -> None:
    """Draw the button that opens the exports of a run."""
    label = _("Export")
    named = label if width == "content" else f"{label} :gray[{escape(run.meta.name)}]"
    if st.button(
        named,
        key=key,
        icon=":material/download:",
        help=_("As a zip, or for other tools."),
        width="stretch" if width == "stretch" else "content",
        on_click=_close_others,
    ):
        st.session_state.pop(_MADE, None)
        opened = st.dialog(label, width="large", icon=":material/download:", on_dismiss=_forget)
        opened(_panel)(run)


def _close_others() -> None:
    state.close_dialog()
    state.close_menus()


def _forget() -> None:
    st.session_state.pop(_MADE, None)


def _panel(run: Run) -> None:
    st.markdown(f"**{escape(run.meta.name)}**")
    for offer in OFFERS:
        _row(run, offer)


def _row(run: Run, offer: Offer) -> None:
    """Draw one export: what it is, its size, and the button that makes it."""
    with st.container(border=True, key=f"take-{offer.key}"):
        words, place = st.columns([5, 2], vertical_alignment="center")
        n_bytes = offer.about(run)
        size = "" if n_bytes is None else f" · {_('about {size}', size=show.size(n_bytes))}"
        with words, st.container(gap="xxsmall"):
            st.markdown(f"{offer.icon} **{_(offer.label)}**{size}")
            st.caption(_(offer.help))
            ticked = set()
            for tick in offer.ticks:
                if not tick.offered(run):
                    continue
                label, more = _(tick.label), tick.more(run)
                if more is not None:
                    label = _("{label}, about {size} more", label=label, size=show.size(more))
                key = f"take-{offer.key}-{tick.key}-{run.id}"
                if st.checkbox(label, help=_(tick.help), key=key):
                    ticked.add(tick.key)
        refusal = offer.refusal(run)
        with place:
            pressed = st.button(
                _("Export: {what}", what=_(offer.label)),
                key=f"take-make-{offer.key}",
                icon=":material/download:",
                width="stretch",
                disabled=refusal is not None,
                help=None if refusal is None else escape(_(refusal)),
            )
        if refusal is not None:
            st.caption(f":material/info: {escape(_(refusal))}")
        if pressed:
            _make(run, offer, frozenset(ticked))
        made = st.session_state.get(_MADE)
        if isinstance(made, _Made) and (made.run_id, made.key) == (run.id, offer.key):
            _saved(made, offer)


def _make(run: Run, offer: Offer, ticked: frozenset[str]) -> None:
    """Make a file and show the progress, or what went wrong."""
    st.session_state.pop(_MADE, None)
    bar = st.progress(0.0, _("Exporting"))

    def hear(share: float, words: str) -> None:
        bar.progress(min(1.0, share), _(words))

    try:
        content = offer.make(run, hear, ticked)
        made = _Made(run.id, offer.key, offer.name(run), content, secrets.token_hex(4))
        st.session_state[_MADE] = made
    except (ValueError, OSError) as error:
        show.problem(error)
    finally:
        bar.empty()


def _saved(made: _Made, offer: Offer) -> None:
    """Save the file automatically, once; the button is for browsers that ask first."""
    with st.container(horizontal=True, vertical_alignment="center", key=f"take-save-{made.mark}"):
        size = show.size(len(made.content))
        ready = _("`{name}` is ready, {size}. Not saved?", name=made.name, size=size)
        st.caption(f":material/check: {ready}")
        st.download_button(
            _("Save again"),
            made.content,
            file_name=made.name,
            mime=offer.mime,
            on_click="ignore",
            key=f"take-again-{offer.key}",
        )
    press(f"take-save-{made.mark}", mark=made.mark, key=f"take-press-{offer.key}")
