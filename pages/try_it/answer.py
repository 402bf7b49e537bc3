"""How answers are shown: in a line, as numbers, as beams, with the attention of a chosen head."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from pages.app import show
from pages.app.address import view
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from tfm_core.inspect import generation
from tfm_core.inspect.attention.maps import MEAN
from tfm_core.inspect.generation import BeamComparison, BeamSettings, Hypothesis
from tfm_core.inspect.generation_source import Source
from tfm_core.plots.writing import beam_tree
from tfm_core.probe.types import Array

MAX_BESIDE = 30
"""Characters of a text beside its tree; longer texts go below it."""
COLLAPSED = {"label_visibility": "collapsed"}
FOUND_BY = {"wider": N_("Beam, width {wider}"), "greedy": N_("Greedy"), "sample": N_("Sample")}
Join = Callable[[Sequence[str]], str]


def in_a_line(*facts: tuple[str, str], is_right: bool | None = None) -> str:
    """Return named texts as one line, and whether the answer is right."""
    parts = [f":grey[{name}] **{escape(text or '–')}**" for name, text in facts]
    if is_right is not None:
        parts.append(show.right_or_wrong(is_right=is_right))
    return "\u2002 ".join(parts)


def cards(*facts: tuple[str, str, str]) -> None:
    """Show numbers side by side, two on a phone. facts: label, number and help text of each."""
    with st.container(horizontal=True, gap="small"):
        for label, value, help_text in facts:
            st.metric(label, value, help=help_text, border=True, width=168)


def head_of(
    label: str, maps: Array, scope: str, *, run_id: str, aligning: str = ""
) -> tuple[int, int]:
    """Choose a layer and a head or MEAN, counted from 0; the default is the last layer's mean.

    maps: (L, H, …), the attention of each head. aligning: the head that aligns words best, then
    the default.
    """
    n_layers, n_heads = maps.shape[:2]
    names = {}
    for layer in range(1, n_layers + 1):
        names[str(layer)] = _("Layer {n}, mean of all heads", n=layer)
        for head in range(1, n_heads + 1 if n_heads > 1 else 1):
            name = f"{layer}.{head}"
            names[name] = _("Layer {n}, head {head}", n=layer, head=head)
            if name == aligning:
                names[name] = _("Layer {n}, head {head} (aligns best)", n=layer, head=head)
    if len(names) == 1:
        return 0, MEAN
    first = aligning if aligning in names else str(n_layers)
    field = view.choice(label, names, first, is_list=True, holds_for=run_id)
    chosen_layer, _dot, chosen_head = view.one(field, "head", scope).partition(".")
    return int(chosen_layer) - 1, int(chosen_head or 0) - 1


@st.cache_data(show_spinner=False, max_entries=32)
def search(
    mark: str, settings: BeamSettings, forced: tuple[tuple[int, int], ...], _source: Source
) -> BeamComparison | None:
    """Search for the likeliest texts; None where the text has ended. mark: names the source."""
    return generation.compare_beams(_source, settings, dict(forced))


def show_search(comparison: BeamComparison, join: Join, *, key: str, step: int = 0) -> None:
    """Show a beam search: its tree, its texts, and whether another method finds a better one.

    step: shows the texts after this token; 0 is the last.
    """
    st.markdown(_conclusion(comparison, join))
    alpha = comparison.settings.alpha
    longest = max(len(join(text.tokens)) for text in comparison.steps[-1])
    left, right = st.container(), st.container()
    if longest <= MAX_BESIDE:
        left, right = st.columns([3, 2], gap="medium")
    with left:
        show.figure(
            beam_tree(comparison.tree, max_steps=16),
            _(
                "The best text is on top; each column is a token with its ln p. Grey: dropped. "
                "Square: ended."
            ),
            key=f"{key}-tree",
        )
    with right:
        kept = [("", text) for text in comparison.steps[step - 1]]
        _texts(kept, comparison, join, key=f"{key}-beams")
        caption = _("Score: the sum of ln p, which stays fixed once a text has ended.")
        if alpha:
            caption = _(
                "Score: the sum of ln p. Rank: score / ((5 + tokens) / 6)^{alpha}.",
                alpha=f"{alpha:g}",
            )
        st.caption(caption)
    st.header(_("Other methods"), anchor=False)
    others = [
        (_(FOUND_BY[found_by], wider=comparison.wider), text)
        for found_by, text in comparison.others
    ]
    _texts(others, comparison, join, key=f"{key}-others")
    st.caption(
        _("Sampled at temperature 1; likely texts are often repetitive (Holtzman et al. 2020).")
    )


def _conclusion(comparison: BeamComparison, join: Join) -> str:
    """Return whether and how a better text than the beam's best was found."""
    is_ranked = bool(comparison.settings.alpha)
    if not comparison.is_missed:
        searched_by = {"wider": comparison.wider, "n": len(comparison.samples)}
        if is_ranked:
            return paragraph("beam/no-better-rank", **searched_by)
        return paragraph("beam/none-likelier", **searched_by)
    found_by, text = comparison.others[0]
    times = f"{comparison.times_missed:.2g}"  # 1.3, 40, 5,000
    if comparison.times_missed >= 9.95:
        times = f"{float(times):,.0f}"
    values: dict[str, object] = {
        "width": comparison.settings.width,
        "times": times,
        "found_by": _(FOUND_BY[found_by], wider=comparison.wider),
        "text": escape(join(text.tokens)),
        "score": f"{text.ranking:.2f}",
        "best": f"{comparison.best.ranking:.2f}",
    }
    if is_ranked:
        sentences = [paragraph("beam/missed-rank", **values)]
    else:
        sentences = [paragraph("beam/missed-likelier", **values)]
    if comparison.fell_out_at is not None:
        sentences.append(_("The beam dropped it at token {n}.", n=comparison.fell_out_at + 1))
    beats_beam = comparison.greedy.ranking > comparison.best.ranking + 1e-6
    if found_by != "greedy" and comparison.settings.width > 1 and beats_beam:
        sentences.append(
            _("Greedy beats the beam, too: {score}.", score=f"{comparison.greedy.ranking:.2f}")
        )
    return " ".join(sentences)


def _texts(
    texts: list[tuple[str, Hypothesis]], comparison: BeamComparison, join: Join, *, key: str
) -> None:
    """Show texts with their scores, and the method of each if there are several."""
    columns: dict[str, list[object]] = {}
    if any(found_by for found_by, _text in texts):
        columns[_("Found by")] = [found_by for found_by, _text in texts]
    columns |= {
        _("Text"): [join(text.tokens) for _by, text in texts],
        _("Score (ln p)"): [round(text.score, 3) for _by, text in texts],
    }
    if comparison.settings.alpha:
        columns[_("Ranked by")] = [round(text.ranking, 3) for _by, text in texts]
    columns |= {
        _("Probability"): [f"{math.exp(text.score):.3g}" for _by, text in texts],
        _("Tokens"): [text.n_written for _by, text in texts],
        _("Ended"): ["✓" if text.is_done else "" for _by, text in texts],
    }
    st.dataframe(pd.DataFrame(columns), hide_index=True, width="stretch", key=key)
