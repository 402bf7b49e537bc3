"""The five linked maps of the mask lab, with the clicks in them."""

from __future__ import annotations

import hashlib

import streamlit as st

from pages.components.mask_editor import SheetCell, mask_editor
from pages.i18n import _
from pages.masks.controls import MaskChoice
from tfm_core.inspect.masks import lab
from tfm_core.inspect.masks.lab import MaskedAttention, Projected
from tfm_core.probe.types import Bools

_EDITS = "masks-edits"


def maps(choice: MaskChoice, projected: Projected) -> MaskedAttention:
    """Show the maps; return the attention as it is under the mask with the clicks in it."""
    made = _allowed(choice, projected.query, projected.key)
    version = _version(choice, projected)
    edited = _edits(version)
    flow = lab.flow(projected, lab.toggled(made, edited))
    mask_editor(
        flow,
        projected.query,
        projected.key,
        edited=edited,
        version=version,
        on_edit=lambda cells: _remember(version, cells),
        key="masks-editor",
    )
    _facts(flow, projected, edited, version)
    return flow


def _facts(
    flow: MaskedAttention, projected: Projected, edited: tuple[SheetCell, ...], version: str
) -> None:
    n, total = int(flow.allowed.sum()), flow.allowed.size
    words = [_("**{n}** of {total} pairs are allowed.", n=n, total=total)]
    blind = [projected.query[query] for query in flow.blind]
    if blind:
        which = ", ".join(f"`{token}`" for token in dict.fromkeys(blind))
        words.append(_("Queries that may attend to nothing get zeros: {which}.", which=which))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(" ".join(words), width="content")
        if edited:
            st.button(
                _("Undo my clicks ({n})", n=len(edited)),
                icon=":material/undo:",
                key="masks-undo",
                on_click=_remember,
                args=(version, ()),
            )


def clicked(choice: MaskChoice, projected: Projected) -> tuple[SheetCell, ...]:
    """Return the cells that were turned over by hand: empty where the mask is that of its kind."""
    return _edits(_version(choice, projected))


def without_padding(choice: MaskChoice, projected: Projected) -> Bools:
    """Return what the chosen mask allows (Q, K) where it does not look at padding."""
    return _allowed(
        choice, lab.without_padding(projected.query), lab.without_padding(projected.key)
    )


def _allowed(choice: MaskChoice, query: tuple[str, ...], key: tuple[str, ...]) -> Bools:
    return lab.allowed(
        choice.kind,
        query,
        key,
        window=choice.window,
        prefix=choice.prefix,
        segments=choice.segments,
    )


def _version(choice: MaskChoice, projected: Projected) -> str:
    sizes = (choice.segments, choice.window, choice.prefix)
    parts = (choice.kind, projected.query, projected.key, *sizes)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _edits(version: str) -> tuple[SheetCell, ...]:
    kept_version, cells = st.session_state.get(_EDITS, ("", ()))
    return cells if kept_version == version else ()


def _remember(version: str, cells: tuple[SheetCell, ...]) -> None:
    st.session_state[_EDITS] = (version, cells)
