"""Which example is looked at, what stands in the place of a part, and how much is measured."""

from __future__ import annotations

import streamlit as st

from pages.components.thumbnails import Thumbnail, thumbnails
from pages.i18n import _, paragraph
from pages.knockouts.link import ALL, EXAMPLE, HOW
from pages.knockouts.outcome import Asked
from pages.ui import view_link
from pages.ui.task_panels import example_name
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.inspect.knockouts import measure
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run


def controls(run: Run, probe: Probe) -> Asked:
    """Choose how parts are switched off, on how many examples that is measured, and the example."""
    n_first, n_most = measure.n_first(run), measure.n_most(run)
    count = len(probe.items)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        problem = view_link.receive(EXAMPLE)
        st.session_state[EXAMPLE.key] = min(int(st.session_state[EXAMPLE.key]), count - 1)
        index = _example(run, probe)
        how = view_link.choice(_("In its place"), HOW, is_labelled=False)
        with st.popover(_("Zero or mean?"), icon=":material/help:"):
            st.markdown(paragraph("knockouts/zero-or-mean"))
        if n_most > n_first:
            problem = problem or view_link.receive(ALL)
            st.toggle(
                _("All {n} validation examples", n=f"{n_most:,}"),
                key=ALL.key,
                help=_("Off: the first {n}.", n=n_first),
            )
        view_link.warn(problem)
    view_link.say(EXAMPLE, index)
    is_all = n_most > n_first and bool(st.session_state[ALL.key])
    view_link.say(ALL, is_all)
    return Asked(
        how="mean" if how == "mean" else "zero",
        n=n_most if is_all else n_first,
        is_all=is_all,
        example=index,
        mark=checkpoint_mark(run),
    )


def _example(run: Run, probe: Probe) -> int:
    """Choose one of the run's examples: a picture by itself, a text by its words."""
    if probe.images is None:
        return st.selectbox(
            _("Example"),
            range(len(probe.items)),
            format_func=lambda i: example_name(run.experiment, probe.items[i], i + 1),
            key=EXAMPLE.key,
            label_visibility="collapsed",
            width=360,
        )
    index = int(st.session_state[EXAMPLE.key])
    pictures = zip(probe.images, probe.items, strict=True)
    thumbnails(
        [
            Thumbnail(picture, example_name(run.experiment, item, number))
            for number, (picture, item) in enumerate(pictures, 1)
        ],
        chosen=index,
        label=_("Example"),
        on_pick=lambda picked: st.session_state.update({EXAMPLE.key: picked}),
        key="knockouts-pictures",
    )
    return index
