"""Before the Transformer: attention in RNNs, and what changed in 2017."""

from __future__ import annotations

import streamlit as st

from pages.before import contest, times
from pages.before.link import VIEW
from pages.i18n import _, content
from pages.ui import show
from pages.ui.address import view_link
from pages.ui.runs import run_actions

EQUATIONS = {
    "2014": (
        r"\begin{gathered} c = h_S \\ s_0 = c,\quad s_t = f(s_{t-1}, y_{t-1}) \quad "
        r"\text{(Sutskever)} \\ s_t = f(s_{t-1}, [y_{t-1}; c]) \quad \text{(Cho)} \end{gathered}"
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
    for part, latex in zip(words, EQUATIONS.values(), strict=True):
        title, _newline, text = part.removeprefix("## ").partition("\n")
        with st.container(border=True):
            left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
            left.markdown(f"## {title}\n\n{text.strip()}")
            right.latex(latex)
    with st.container(horizontal=True):
        for name, label in (
            ("translate-additive", _("Train additive attention")),
            ("translate-luong", _("Train Luong’s attention")),
            ("translate", _("Train the Transformer")),
        ):
            if st.button(label, key=f"before-{name}", icon=":material/play_arrow:"):
                run_actions.start_preset(name)


page()
