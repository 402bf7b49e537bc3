"""Attention maps of the three models, with the true alignment outlined."""

from __future__ import annotations

import streamlit as st

from pages.i18n import N_, _
from pages.ui import show, state
from pages.ui.navigation import page_table
from pages.ui.runs import run_words
from tfm_core.inspect.attention import rnn_attention
from tfm_core.inspect.attention.map_view import MapView
from tfm_core.inspect.attention.rnn_attention import HEADS, Contest, CrossAttentionAtStep
from tfm_core.inspect.compare import conclusions
from tfm_core.plots.heads.attention import head_map, outline_cells
from tfm_core.plots.palette import ORANGE
from tfm_core.runs.run import Run

LABELS = {
    "additive": N_("RNN, additive attention (2015)"),
    "one-head": N_("Transformer, one head (2017)"),
    "many-heads": N_("Transformer, {n} heads (2017)", n=HEADS),
}
SHORT = {
    "additive": N_("RNN, additive"),
    "one-head": N_("Transformer, 1 head"),
    "many-heads": N_("Transformer, {n} heads", n=HEADS),
}
FIGURES = (
    N_("Whole sequences right"),
    N_("Attention on true words"),
    N_("Alignment error rate"),
    N_("Parameters"),
    N_("Training time"),
    N_("Time per step"),
)
_SOFTMAX = r"\alpha_{tj} = \mathrm{softmax}_j(e_{tj}),\ \ c_t = \sum_j \alpha_{tj} "
LATEX = {
    "additive": (
        r"\begin{gathered} e_{tj} = v^\top \tanh\left(W s_{t-1} + U h_j\right) \\ "
        rf"{_SOFTMAX} h_j \end{{gathered}}"
    ),
    "one-head": (
        r"\begin{gathered} e_{tj} = q_t^\top k_j / \sqrt{d} \\ "
        rf"{_SOFTMAX} v_j \end{{gathered}}"
    ),
    "many-heads": (
        r"\begin{gathered} e^h_{tj} = (q^h_t)^\top k^h_j / \sqrt{d/H} \\ "
        r"\mathrm{out}_t = [c^1_t; \dots; c^H_t]\,W_O \end{gathered}"
    ),
}
ASKS = {
    "additive": N_("Attends **before** reading the last token."),
    "one-head": N_("Queries with the last token."),
    "many-heads": N_("{n} patterns; this one aligns best.", n=HEADS),
}


_SENTENCE = "before-sentence"


def maps(contest: Contest, attentions: dict[str, CrossAttentionAtStep | None]) -> None:
    st.header(_("Attention maps"), anchor=False)
    sentences = next((s for run in contest.values() if (s := rnn_attention.sentences(run))), [])
    index = 0
    if sentences:
        index = (
            st.selectbox(
                _("Unseen sentence"),
                range(len(sentences)),
                format_func=sentences.__getitem__,
                key=f"{_SENTENCE}-{next(iter(contest.values())).experiment.task.name}",
            )
            or 0
        )
    columns = st.columns(len(contest), gap="medium")
    for column, (name, run) in zip(columns, contest.items(), strict=True):
        with column:
            _one(name, run, attentions[name], index)
    st.caption(_("Rows: tokens written; columns: source. Orange: true source words."))


def _one(name: str, run: Run, attention: CrossAttentionAtStep | None, index: int) -> None:
    status = run.status
    st.subheader(_(LABELS[name]), anchor=False)
    words = [run_words.badge(status), run_words.progress(status)]
    st.markdown(" ".join(words))
    if attention is None or index >= len(attention.weights):
        st.info(_("Maps appear after the first step."), icon=":material/hourglass_empty:")
    else:
        _map(name, run, attention, index)
    st.latex(LATEX[name])
    st.caption(_(ASKS[name]))
    with st.container(horizontal=True):
        for page, label, icon in (
            ("attention", _("Open all maps"), ":material/grid_on:"),
            ("train", _("Curves"), ":material/show_chart:"),
            ("walk", _("Walk"), ":material/directions_walk:"),
        ):
            query = {"run": run.id}
            st.page_link(page_table.path_of(page), label=label, icon=icon, query_params=query)


def _map(name: str, run: Run, attention: CrossAttentionAtStep, index: int) -> None:
    names, rows = attention.names[index], attention.rows[index]
    view = MapView(
        attention.weights[index][attention.head],
        rows.names,
        names.key,
        query_title=_(rows.title),
        key_title=_("source token"),
        query_words=tuple(_(row) for row in rows.words),
    )
    figure = head_map(view, theme=state.theme())
    outline_cells(figure, attention.truth[index], ORANGE)
    words = [_("Step {step}; no true alignment.", step=f"{attention.step:,}")]
    if attention.is_scored:
        share = _(
            "Step {step}, {n} sentences: {share} on true words; uniform {even}.",
            step=f"{attention.step:,}",
            n=len(attention.weights),
            share=show.percent(attention.share),
            even=show.percent(attention.even),
        )
        words = [share, _(conclusions.strongest(*attention.strongest_true))]
    if len(attention.weights[index]) > 1:
        words.append(_("Head {head}.", head=attention.head + 1))
    show.live_figure(figure, " ".join(words), key=f"before-map-{name}")
