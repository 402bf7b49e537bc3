"""What the three attentions are called, and their equations."""

from __future__ import annotations

from pages.ui.words import _
from tfm_core.inspect.before import HEADS

LABELS = {
    "additive": _("RNN, additive attention (2015)"),
    "one-head": _("Transformer, one head (2017)"),
    "many-heads": _("Transformer, {n} heads (2017)").format(n=HEADS),
}
SHORT = {
    "additive": _("RNN, additive"),
    "one-head": _("Transformer, 1 head"),
    "many-heads": _("Transformer, {n} heads").format(n=HEADS),
}
FIGURES = (
    _("Whole sequences right"),
    _("Attention on true words"),
    _("Alignment error rate"),
    _("Parameters"),
    _("Trained in"),
    _("A step"),
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
    "additive": _("Asks with the decoder’s state **before** it reads the token of the row."),
    "one-head": _("Asks with the token of the row itself; all rows ask at once."),
    "many-heads": _("{n} patterns, each on a quarter of the width; this one aligns best.").format(
        n=HEADS
    ),
}
