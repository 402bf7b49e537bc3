"""Export: a run as files, each made when its button is pressed."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.runs import film, runs_access, shown_run
from pages.app.typed import escape
from pages.components.effects import press
from pages.i18n import N_, _
from tfm_core.choices.variants.record import resolve
from tfm_core.data.user_data.sets import UserSet
from tfm_core.export.exports import EXPORTS, Export, Progress
from tfm_core.runs import own_sets
from tfm_core.runs.run import Run

_MADE = "take-made"  # the last file of the session: what of, content, mark


@dataclass(frozen=True, slots=True)
class Tick:
    """An optional part of a file.

    offered: for which runs. more: how many bytes it adds, None if unknown.
    """

    key: str
    label: str
    help: str
    offered: Callable[[Run], bool]
    more: Callable[[Run], int | None]


@dataclass(frozen=True, slots=True)
class Offer:
    """A file to export a run as.

    make: from the run, a progress callback and whether the tick is set; raises ValueError with a
    message. about: its size in bytes, None if unknown. refusal: why this run cannot be exported so,
    or None.
    """

    key: str
    label: str
    help: str
    icon: str
    mime: str
    name: Callable[[Run], str]
    make: Callable[[Run, Progress, bool], bytes]
    about: Callable[[Run], int | None] = lambda run: None
    refusal: Callable[[Run], str | None] = lambda run: None
    tick: Tick | None = None


def _zip(run: Run, progress: Progress, with_set: bool) -> bytes:
    from tfm_core.export import bundle

    return bundle.bundle(
        run,
        progress,
        with_set=with_set and _set(run) is not None,
        with_labels=not visitors.watches(run),
        say=_,
    )


def _set(run: Run) -> UserSet | None:
    """Return the data set of a run, if it is the visitor's own."""
    from tfm_core.export import bundle

    own = bundle.own_set(run)
    mine = [] if own is None else own_sets.listed(runs_access.store(), visitors.visitor())
    return next((own for each in mine if own is not None and each.id == own.id), None)


def _offer(export: Export) -> Offer:
    return Offer(
        export.name,
        export.label,
        export.help,
        export.icon,
        export.mime,
        export.file_name,
        lambda run, progress, _is_ticked: export.make(run, progress),
        film.weights_bytes if export.needs_weights else lambda run: None,
        export.refusal,
    )


OFFERS: tuple[Offer, ...] = (
    Offer(
        "zip",
        N_("Everything (zip)"),
        N_("Settings, metrics, weights and code. You can import it on Runs."),
        ":material/folder_zip:",
        "application/zip",
        lambda run: str(resolve("tfm_core.export.bundle:file_name")(run)),
        _zip,
        lambda run: int(resolve("tfm_core.export.bundle:estimate")(run)),
        tick=Tick(
            "set",
            shown_run.WITH_DATA,
            N_("Anyone with the zip can then read the whole data set."),
            offered=lambda run: _set(run) is not None,
            more=lambda run: own.n_bytes if (own := _set(run)) else None,
        ),
    ),
    Offer(
        "page",
        N_("Replay (HTML page)"),
        N_("Plays curves, answers and heads in any browser, offline. At most 5 MB."),
        ":material/movie:",
        "text/html",
        film.file_name,
        lambda run, progress, with_model: film.film(run, with_model=with_model, progress=progress),
        tick=Tick(
            "model",
            N_("Include the model, so the page can answer"),
            N_("Adds ONNX Runtime and the weights."),
            offered=lambda run: run.has_checkpoint,
            more=film.model_bytes,
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
        width="stretch" if width == "stretch" else "content",
        on_click=_close_others,
    ):
        _forget()
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
            tick, is_ticked = offer.tick, False
            if tick is not None and tick.offered(run):
                label, more = _(tick.label), tick.more(run)
                if more is not None:
                    label = _("{label}, about {size} more", label=label, size=show.size(more))
                key = f"take-{offer.key}-{tick.key}-{run.id}"
                is_ticked = st.checkbox(label, help=_(tick.help), key=key)
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
            _make(run, offer, is_ticked=is_ticked)
        made_of, content, mark = st.session_state.get(_MADE, (None, b"", ""))
        if made_of == (run.id, offer.key):
            _saved(content, offer.name(run), offer, mark)


def _make(run: Run, offer: Offer, *, is_ticked: bool) -> None:
    """Make a file and show the progress, or what went wrong."""
    _forget()
    bar = st.progress(0.0, _("Exporting"))

    def hear(share: float, words: str) -> None:
        bar.progress(min(1.0, share), _(words))

    try:
        content = offer.make(run, hear, is_ticked)
        st.session_state[_MADE] = (run.id, offer.key), content, secrets.token_hex(4)
    except (ValueError, OSError) as error:
        show.problem(error)
    finally:
        bar.empty()


def _saved(content: bytes, name: str, offer: Offer, mark: str) -> None:
    """Save the file automatically, once; the button is for browsers that ask first.

    mark: new for each file.
    """
    with st.container(horizontal=True, vertical_alignment="center", key=f"take-save-{mark}"):
        ready = _("`{name}` is ready ({size}). Not saved?", name=name, size=show.size(len(content)))
        st.caption(f":material/check: {ready}")
        st.download_button(
            _("Save again"),
            content,
            file_name=name,
            mime=offer.mime,
            on_click="ignore",
            key=f"take-again-{offer.key}",
        )
    press(f"take-save-{mark}", mark=mark, key=f"take-press-{offer.key}")
