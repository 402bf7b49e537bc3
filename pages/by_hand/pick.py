"""The number whose arithmetic is written out, chosen in lists or by clicks."""

from __future__ import annotations

import streamlit as st

from pages.by_hand import words
from pages.by_hand.link import AT
from pages.by_hand.words import Given
from pages.i18n import _
from pages.ui.address import view_link
from tfm_core.inspect.by_hand import attention, text
from tfm_core.plots.heads.by_hand import Pick

_PICK = "hand-pick"
_PAIRS = {"scores", "scaled", "masked", "exp", "weights", "mix"}
_WORD_AND_NUMBER = {"query", "made-query", "output", "final"}


def pickers(given: Given, n_numbers: int) -> Pick:
    """Choose the query, key and number that are written out; clicks on the tables do so too."""
    n = len(given.words)
    first = _first(given)
    linked = view_link.opened(AT)
    if linked is not None:
        try:
            st.session_state[_PICK] = Pick(*text.indices_of(linked, (n, n, n_numbers)))
        except ValueError as error:
            view_link.warn(_(error) + " " + _("Another number is written out instead."))
    stored: Pick = st.session_state.get(_PICK, first)
    pick = stored.within(n, n_numbers)
    places = pick.query, pick.key, pick.dimension
    view_link.say(AT, "" if pick == first else text.text_of_indices(places))
    with st.container(horizontal=True):
        query = _select(_("Query"), "query", given.words, pick.query)
        key = _select(_("Key"), "key", given.words, pick.key)
        names = [str(index + 1) for index in range(n_numbers)]
        dimension = _select(_("Number"), "dimension", names, pick.dimension)
    return Pick(query, key, dimension)


def _first(given: Given) -> Pick:
    """Return the first choice: the two words whose first vectors are alike."""
    return Pick(*attention.alike_pair(len(given.typed)), 0)


def _select(label: str, name: str, options: tuple[str, ...] | list[str], index: int) -> int:
    key = f"hand-at-{name}"
    st.session_state[key] = index

    def picked() -> None:
        old: Pick = st.session_state.get(_PICK, Pick(index, index, 0))
        parts = {"query": old.query, "key": old.key, "dimension": old.dimension}
        st.session_state[_PICK] = Pick(**{**parts, name: st.session_state[key]})

    return st.selectbox(
        label, range(len(options)), format_func=lambda i: options[i], key=key, on_change=picked,
        width=150,
    )  # fmt: skip


def clicked(given: Given, board: str, row: int, column: int) -> None:
    """Write out the number that was clicked; a click on the mask also flips its cell."""
    n = len(given.words)
    if board == "mask":
        words.flip(words.mask_kind(), n, row, column)
    old: Pick = st.session_state.get(_PICK, _first(given))
    if board in _PAIRS or board == "mask":
        new = Pick(row, column, old.dimension)
    elif board in _WORD_AND_NUMBER:
        new = Pick(row, old.key, column)
    elif board == "key":  # transposed: words across
        new = Pick(old.query, column, row)
    else:
        new = Pick(old.query, row, column)
    st.session_state[_PICK] = new
