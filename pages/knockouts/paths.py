"""The paths from a head to the answer, in a diagram."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.components.diagram import diagram, looks
from pages.i18n import _, paragraph
from pages.knockouts.choice import choose_head
from pages.knockouts.link import HEAD
from pages.ui import show
from pages.ui.typed import escape
from tfm_core.inspect.knockouts import head_paths
from tfm_core.inspect.knockouts.head_paths import SENDER, HeadPaths
from tfm_core.inspect.knockouts.parts import Part, heads_of, name_of
from tfm_core.runs.run import Run


def part(run: Run, first: Part, follow: Callable[[Part], HeadPaths]) -> None:
    """Draw how the effect of a head reaches the answer. first: shown where the link names none."""
    st.markdown(_("**The paths of a head to the answer**"))
    left, right = st.columns([5, 4], gap="medium")
    with right:
        head = choose_head(run, (first,))
        found = follow(head)
        st.markdown(_words(found))
        show.prose(paragraph("knockouts/paths"))
    heads = {one.code for one in heads_of(run.experiment)}
    dot, nodes = head_paths.graph(found, head, say=_)

    def pick(name: str) -> None:
        if name in heads:
            st.session_state[HEAD.key] = name

    rows = [
        [_("Through"), _("Restored")],
        [_("no other part"), f"{found.direct:+.4f}"],
        *([_(name_of(one)), f"{share:+.4f}"] for one, share in found.through),
    ]
    with left:
        diagram(
            dot,
            nodes,
            chosen=SENDER,
            looks=looks(),
            table=rows,
            on_pick=pick,
            key="knockouts-paths",
        )


def _words(found: HeadPaths) -> str:
    return _(
        "It restores **{total}** of “{answer}”: {direct} directly, {through} through later parts; "
        "{together} only together.",
        total=f"{found.total:+.2f}",
        answer=escape(found.answer),
        direct=f"{found.direct:+.2f}",
        through=f"{found.in_sum:+.2f}",
        together=f"{found.together:+.2f}",
    )
