"""A choice of names that stands in the address bar, for pages whose widgets say it in words.

``bind="query-params"`` would put the words on the screen into the link; here the link holds the
name, which stays the same in every language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.i18n import _
from pages.ui.controls import plain


def read(key: str, query: str, names: Sequence[str], first: str | None) -> str | None:
    """Make the widget ``key`` show what the link asks for; call it before the widget is drawn.

    first: the name without a link; None where nothing may be chosen. Returns a sentence where the
    link asks for something that does not exist.
    """
    said = opened(key, query)
    problem = None
    if said is not None:
        if said in names:
            st.session_state[key] = said
        else:
            problem = _unknown(query, said, names)
    if st.session_state.get(key) not in names:
        st.session_state[key] = first
    return problem


def read_several(key: str, query: str, names: Sequence[str], first: Sequence[str]) -> str | None:
    """Make a widget for several names show those that the link lists, parted by commas.

    Otherwise as ``read``; an empty list in the link means that none is chosen.
    """
    said = opened(query, query)
    problem = None
    if said is not None:
        asked = [name for name in said.split(",") if name]
        unknown = next((name for name in asked if name not in names), None)
        if unknown is None:
            st.session_state[key] = list(dict.fromkeys(asked))
        else:
            problem = _unknown(query, unknown, names)
    st.session_state.setdefault(key, list(first))
    return problem


def say_several(query: str, chosen: Sequence[str], first: Sequence[str]) -> None:
    """Put what is chosen into the link, unless it is what is chosen without one."""
    say(query, query, None if list(chosen) == list(first) else ",".join(chosen))


def opened(key: str, query: str) -> str | None:
    """Return what a link says that was opened just now; None where the page itself said it."""
    said = st.query_params.get(query)
    return None if said == st.session_state.get(_seen(key)) else said


def renamed(old: str, query: str, labels: Mapping[str, str]) -> None:
    """Understand a link of earlier, which said a label (name -> label) under an ``old`` query.

    old: may be the query itself.
    """
    said = st.query_params.get(old)
    by_label = {label: name for name, label in labels.items()}
    if said is None or (old == query and said not in by_label):
        return
    del st.query_params[old]
    st.query_params[query] = by_label.get(said, said)


def renamed_several(old: str, query: str, labels: Mapping[str, str]) -> None:
    """Understand a link of earlier, which repeated ``old`` for each label (name -> label)."""
    said = st.query_params.get_all(old)
    if said:
        by_label = {label: name for name, label in labels.items()}
        del st.query_params[old]
        st.query_params[query] = ",".join(by_label.get(label, label) for label in said)


def say(key: str, query: str, name: str | None) -> None:
    """Put a name into the link; None takes it out."""
    if name is None:
        st.query_params.pop(query, None)
    elif st.query_params.get(query) != name:
        st.query_params[query] = name
    st.session_state[_seen(key)] = name


def choice(
    label: str,
    options: Mapping[str, str],
    *,
    key: str,
    query: str,
    old: str | None = None,
    first: str | None = None,
    help: str | None = None,
    is_labelled: bool = True,
) -> str:
    """Show a row of options (name -> label), of which the link says the one that is not first.

    Labels may be marked with ``N_`` only: they are translated here.

    first: the name without a link, by default that of the first option; old: the query of the
    links of earlier, which said labels, where it was another one.
    """
    names = list(options)
    default = names[0] if first is None else first
    renamed(old or query, query, options)
    unknown = read(key, query, names, default)
    picked = st.segmented_control(
        label,
        names,
        format_func=lambda name: _(options.get(name, name)),
        required=True,
        key=key,
        persist_state="session",
        wrap=True,
        help=help,
        label_visibility="visible" if is_labelled else "collapsed",
    )
    warn(unknown)
    chosen = picked if picked is not None and picked in options else default
    say(key, query, None if chosen == default else chosen)
    return chosen


def warn(problem: str | None) -> None:
    """Show what in the link could not be followed; its place stays, so that nothing moves."""
    with st.container():
        if problem is not None:
            st.warning(problem, icon=":material/link_off:")


def _seen(key: str) -> str:
    return f"{key}-linked"


def _unknown(query: str, said: str, names: Sequence[str]) -> str:
    rule = _("{query} is “{said}” in the link, but must be one of {names}; it is left out.")
    return rule.format(query=query, said=plain(said[:30]), names=", ".join(names))
