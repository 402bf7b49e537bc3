"""Before the Transformer: attention in RNNs, and what changed in 2017."""

from __future__ import annotations

import streamlit as st

from pages.before import contest, times
from pages.before.link import VIEW
from pages.i18n import _, content, paragraph
from pages.ui import show, state
from pages.ui.address import view_link
from pages.ui.runs import run_actions
from tfm_core.inspect.attention.map_view import MapView
from tfm_core.inspect.attention.rnn_attention import untrained_weights
from tfm_core.inspect.experiments.trial import changed
from tfm_core.plots.heads.attention import head_map
from tfm_core.presets import PRESETS
from tfm_core.sentences import N_
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES

EQUATIONS = {
    "2014": (
        r"\begin{gathered} c = h_S \\ s_0 = c,\quad s_t = f(s_{t-1}, y_{t-1}) \quad "
        r"\text{(Sutskever)} \\ s_t = f(s_{t-1}, [y_{t-1}; c]) \quad \text{(Cho)} \end{gathered}"
    ),
    "linear": (
        r"\begin{gathered} e_{tj} = w^\top [s_{t-1}; h_j] = w_1^\top s_{t-1} + w_2^\top h_j \\ "
        r"\mathrm{softmax}_j(e_{tj}) = \mathrm{softmax}_j(w_2^\top h_j) \end{gathered}"
    ),
    "2015": (
        r"\begin{gathered} e_{tj} = v^\top \tanh(W s_{t-1} + U h_j) \\ \alpha_{tj} = "
        r"\frac{\exp e_{tj}}{\sum_k \exp e_{tk}} \\ c_t = \sum_j \alpha_{tj} h_j \end{gathered}"
    ),
    "2015 b": (
        r"\begin{gathered} e_{tj} = \begin{cases} s_t^\top h_j & \text{dot} \\ "
        r"s_t^\top W h_j & \text{general} \\ "
        r"v^\top \tanh(W [s_t; h_j]) & \text{concat} \end{cases} \\ "
        r"\tilde{s}_t = \tanh(W_c [c_t; s_t]) \end{gathered}"
    ),
    "2017": r"\mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V",
    "2018": (
        r"\begin{gathered} \text{GPT: } p(x_t \mid x_1, \ldots, x_{t-1}) \\ "
        r"\text{BERT: } p(x_t \mid \text{all tokens that are not hidden}) \end{gathered}"
    ),
}


def page() -> None:
    show.header("before")
    views = {"contest": contest.view, "length": times.view, "history": _history}
    views[view_link.choice(_("View"), VIEW, is_labelled=False)]()


def _history() -> None:
    words = content("before_history").split("\n## ")
    for part, (name, latex) in zip(words, EQUATIONS.items(), strict=True):
        title, _newline, text = part.removeprefix("## ").partition("\n")
        with st.container(border=True):
            left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
            left.markdown(f"## {title}\n\n{text.strip()}")
            right.latex(latex)
            if name == "linear":
                _linear_score()
    with st.container(horizontal=True):
        for name, label in (
            ("translate-additive", _("Train additive attention")),
            ("translate-luong", _("Train Luong’s attention")),
            ("translate", _("Train the Transformer")),
        ):
            if st.button(label, key=f"before-{name}", icon=":material/play_arrow:"):
                run_actions.start_preset(name)


def _linear_score() -> None:
    """Show that a linear score gives each target word the same weights, and an additive does not.

    A button trains one.
    """
    source, target = ("I", "love", "AI"), ("나는", "AI를", "사랑한다")
    captions = {
        "linear": _("All rows are equal."),
        "additive": _("Each target word has its own weights."),
    }
    differences = {}
    for name, column in zip(captions, st.columns(2, gap="medium"), strict=True):
        weights = untrained_weights(name, len(target), len(source))
        differences[name] = abs(weights - weights[:1]).max()
        view = MapView(
            weights,
            target,
            source,
            query_title=N_("target token written"),
            key_title=N_("source token"),
            query_words=target,
        )
        title = _("{score} attention", score=_(ALIGNMENT_SCORES[name].label))
        with column:
            figure = head_map(view, title, state.theme())
            show.figure(figure, captions[name], key=f"before-untrained-{name}")
    show.prose(paragraph("before/linear", **differences))
    if st.button(_("Train a linear score"), key="before-linear", icon=":material/play_arrow:"):
        preset = PRESETS["translate-additive"].experiment
        experiment = changed(preset, {"model.attention": "linear"})
        run = run_actions.start(experiment, name=_("Translation with a linear score"))
        if run is not None:
            run_actions.watch(run)


page()
