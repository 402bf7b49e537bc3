"""Vocabularies and lengths of one's own for the model being edited: controls, and the address.

They are for looking: training takes the sizes of its task.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import streamlit as st

from pages.i18n import N_, _
from pages.ui import controls, view_link
from pages.ui.parameters import Number
from tfm_core.facts.architectures import Architecture
from tfm_core.facts.free_sizes import FreeSizes, offered, resized, sizes_of
from tfm_core.sentences import StudentError

MAX_WORDS, MAX_TOKENS = 1_000_000, 8192
_LABELS = {
    "src_vocabulary": N_("Source vocabulary (words)"),
    "tgt_vocabulary": N_("Target vocabulary (words)"),
    "src_len": N_("Source length (tokens)"),
    "tgt_len": N_("Target length (tokens)"),
}


def _size(name: str) -> Number:
    most = MAX_WORDS if name.endswith("vocabulary") else MAX_TOKENS
    return Number(name, first=0, key=f"free-{name}", low=0, high=most)


SRC_VOCABULARY, TGT_VOCABULARY = _size("src_vocabulary"), _size("tgt_vocabulary")
SRC_LEN, TGT_LEN = _size("src_len"), _size("tgt_len")
_SIZES = {one.query: one for one in (SRC_VOCABULARY, TGT_VOCABULARY, SRC_LEN, TGT_LEN)}


@dataclass(frozen=True, slots=True)
class Sized:
    """A model with the sizes of one's choice; ``problem`` says why they could not be taken."""

    architecture: Architecture
    is_free: bool
    problem: str = ""


def take(known: Architecture) -> Sized:
    """Return the model of the draft with the sizes that the session or the link asks for.

    Says the sizes in the link, and draws what is wrong there.
    """
    for parameter in _SIZES.values():
        view_link.warn(view_link.receive(parameter))
    sizes = FreeSizes(**{name: st.session_state[one.key] for name, one in _SIZES.items()})
    for name, parameter in _SIZES.items():
        view_link.say(parameter, getattr(sizes, name) if name in offered(known.shape) else 0)
    try:
        new = resized(known, sizes)
    except StudentError as error:
        return Sized(known, is_free=False, problem=_(error))
    return Sized(new, is_free=new is not known)


def forget() -> None:
    """Take the sizes out of the link of a model that is not edited; the session keeps them."""
    view_link.forget(_SIZES.values())


def editor(known: Architecture, problem: str) -> None:
    """Draw the sizes; known: the model with those of its task."""
    names = offered(known.shape)
    if not names:
        return
    own = asdict(sizes_of(known))
    with st.container(border=True):
        st.header(
            _("Vocabulary and lengths"),
            anchor=False,
            help=_("The task’s sizes, or yours to inspect a model of any size. Training uses the "
                "task’s."),
        )  # fmt: skip
        for column, name in zip(st.columns(len(names)), names, strict=True):
            parameter = _SIZES[name]
            key = f"setting:{name}"
            st.session_state[key] = st.session_state.get(parameter.key) or own[name]
            with column:
                st.number_input(
                    _(_LABELS[name]),
                    1,
                    parameter.high,
                    key=key,
                    on_change=_keep,
                    args=(name, key, own[name]),
                    help=_("The task has {n}.", n=f"{own[name]:,}"),
                )
        if problem:
            controls.complaint(problem)


def _keep(name: str, key: str, own: int) -> None:
    picked = int(st.session_state[key])
    st.session_state[_SIZES[name].key] = 0 if picked == own else picked
