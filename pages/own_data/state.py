"""What the page remembers: the set shown, and what was read of an upload."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from itertools import takewhile
from typing import Any, TypeVar, cast

import streamlit as st

from pages.server.streamlit_internals import UploadedFile, free_uploads
from pages.ui.address import parameters, view_link
from pages.ui.address.parameters import Text
from tfm_core.data.own.kinds import SET_KINDS
from tfm_core.data.own.sets import OwnSet

_READ = "own-data-read"
_NAMED = "own-data-named"  # key of the name field, and the proposed name
_UPLOADS = "own-data-uploads"  # number of saved sets: the next upload starts empty

T = TypeVar("T")
KIND = parameters.named(
    "kind",
    {name: SET_KINDS[name].label for name in ("pictures", "pairs", "labels", "text")},
    first="pictures",
    key="own-data-kind",
)
SET = Text("set", first="", key="own-data-set", most=40)


def shown_set(sets: Sequence[OwnSet]) -> OwnSet | None:
    """Return the set from the link or the last choice, else the first one."""
    problem = view_link.receive(SET)
    view_link.warn(problem)
    wanted = st.session_state[SET.key]
    own = next((candidate for candidate in sets if candidate.id == wanted), None)
    if own is None and wanted:
        view_link.forget([SET])
        st.session_state[SET.key] = ""
    view_link.say(SET, "" if own is None else own.id)
    return own or next((candidate for candidate in sets if candidate.problem is None), None)


def show_set(set_id: str) -> None:
    st.session_state[SET.key] = set_id
    view_link.put({SET.query: set_id or None})


def upload_key(name: str) -> str:
    """Return the key of an upload field; a new one after each saved set."""
    return f"own-data-{name}-{st.session_state.get(_UPLOADS, 0)}"


def name_key(kind: str, proposed: str) -> str:
    """Return the key of the name field. Its value is kept until other data are read."""
    key = upload_key(f"name-{kind}")
    if st.session_state.get(_NAMED) != (key, proposed):
        st.session_state[_NAMED] = key, proposed
        st.session_state[key] = proposed
    return key


def common_name(names: Sequence[str]) -> str:
    """Return the common leading words of file names, else the first name."""
    common, *others = [re.split(r"(?=[-_. ])", name) for name in names]
    for other in others:
        same = (one == two for one, two in zip(common, other, strict=False))
        common = [word for word, _is_same in zip(common, takewhile(bool, same), strict=False)]
    return "".join(common) or names[0]


def begin_anew() -> None:
    values = [value for key, value in st.session_state.items() if str(key).startswith("own-data-")]
    files = [file for value in values for file in (value if isinstance(value, list) else [value])]
    free_uploads(file for file in files if isinstance(file, UploadedFile))
    st.session_state[_UPLOADS] = st.session_state.get(_UPLOADS, 0) + 1
    st.session_state.pop(_READ, None)


def read_once(what: Hashable, work: Callable[[], T]) -> T:
    """Return ``work()``, cached once per session. Raises what ``work`` raised, then too."""
    cached: tuple[Hashable, Any, ValueError | None] | None = st.session_state.get(_READ)
    if cached is None or cached[0] != what:
        try:
            cached = (what, work(), None)
        except ValueError as error:
            cached = (what, None, error.with_traceback(None))
        st.session_state[_READ] = cached
    if cached[2] is not None:
        raise cached[2]
    return cast(T, cached[1])
