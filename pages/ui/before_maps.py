"""What each of the three attends to in one sentence, with the true alignment outlined."""

from __future__ import annotations

import streamlit as st

from pages.ui import run_words, show, state
from pages.ui.before_words import ASKS, LABELS, LATEX
from pages.ui.words import _
from tfm_core.inspect import before
from tfm_core.inspect.before import Contest, Looked
from tfm_core.plots.attention import head_map
from tfm_core.plots.outline import outline_cells
from tfm_core.plots.palette import ORANGE
from tfm_core.runs.run import Run

_SENTENCE = "before-sentence"


def maps(contest: Contest, looks: dict[str, Looked | None]) -> None:
    """Draw one map a model, its equation, and the ways to the run."""
    st.header(_("What each attends to"), anchor=False)
    known = next((s for run in contest.runs.values() if (s := before.sentences(run))), [])
    place = 0
    if known:
        place = st.selectbox(
            _("Sentence, unseen in training"),
            range(len(known)),
            format_func=known.__getitem__,
            key=f"{_SENTENCE}-{contest.experiment.task.name}",
        ) or 0  # fmt: skip
    columns = st.columns(len(contest.runs), gap="medium")
    for column, (name, run) in zip(columns, contest.runs.items(), strict=True):
        with column:
            _one(name, run, looks[name], place)
    st.caption(
        _(
            "Rows write, columns are read: the row of a token writes the token **after** it. "
            "Orange frames are the true source words. Do the strong cells fill the frames?"
        )
    )


def _one(name: str, run: Run, look: Looked | None, place: int) -> None:
    status = run.status
    st.markdown(f"**{LABELS[name]}**")
    words = [run_words.badge(status), run_words.progress(status)]
    st.markdown(" ".join(words))
    if look is None or place >= len(look.weights):
        st.info(_("The first look inside is on its way."), icon=":material/hourglass_empty:")
    else:
        _map(name, run, look, place)
    st.latex(LATEX[name])
    st.caption(ASKS[name])
    with st.container(horizontal=True):
        for page, label, icon in (
            ("attention", _("All its maps"), ":material/grid_on:"),
            ("train", _("Curves"), ":material/show_chart:"),
            ("walk", _("Walk"), ":material/directions_walk:"),
        ):
            query = {"run": run.id}
            st.page_link(state.PAGES[page], label=label, icon=icon, query_params=query)


def _map(name: str, run: Run, look: Looked, place: int) -> None:
    names = look.names[place]
    figure = head_map(
        look.weights[place][look.head],
        names.query,
        names.key,
        theme=state.theme(),
        query_title=_("target so far"),
        key_title=_("source"),
    )
    outline_cells(figure, look.truth[place], ORANGE)
    words = _("Step {step}, over all {n} sentences of the probe: {share} on the true words").format(
        step=f"{look.step:,}", n=len(look.weights), share=show.percent(look.share)
    )
    if not look.is_scored:
        words = _("Step {step}: this task has no true source words.").format(step=f"{look.step:,}")
    else:
        words += _(" (even attention: {even}).").format(even=show.percent(look.even))
    if len(look.weights[place]) > 1:
        words += _(" Head {head}.").format(head=look.head + 1)
    show.live_figure(figure, words, key=f"before-map-{name}")
