"""What the three attentions are called, and their equations."""

from __future__ import annotations

from pages.ui.words import _
from tfm_core.inspect.before import HEADS
from tfm_core.inspect.equations_recurrent import attention_latex

LABELS = {
    "additive": _("RNN, additive attention (2015)"),
    "one-head": _("Transformer, one head (2017)"),
    "many-heads": _("Transformer, {n} heads (2017)").format(n=HEADS),
}
LATEX = {
    "additive": attention_latex("additive"),
    "one-head": (
        r"e_{tj} = \frac{q_t^\top k_j}{\sqrt{d}},\quad \alpha_{tj} = \mathrm{softmax}_j(e_{tj}),"
        r"\quad c_t = \sum_j \alpha_{tj} v_j"
    ),
    "many-heads": (
        r"e^h_{tj} = \frac{(q^h_t)^\top k^h_j}{\sqrt{d/H}},\quad "
        r"\mathrm{out}_t = [c^1_t; \dots; c^H_t]\,W_O"
    ),
}
ASKS = {
    "additive": _("Asks with the decoder’s state **before** it reads the token of the row."),
    "one-head": _("Asks with the token of the row itself; all rows ask at once."),
    "many-heads": _("{n} patterns, each on a quarter of the width; this one aligns best.").format(
        n=HEADS
    ),
}
