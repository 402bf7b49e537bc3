"""A beam search: its tree, its ranked texts, and whether another method finds a better one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from pages.i18n import N_, _, paragraph
from pages.ui import show
from pages.ui.typed import escape
from tfm_core.data.opened.spelling import running
from tfm_core.inspect.writing.beams import BeamComparison, Hypothesis
from tfm_core.plots.texts.writing import beam_tree, visible

Join = Callable[[Sequence[str]], str]
FOUND_BY = {"wider": N_("Beam, width {wider}"), "greedy": N_("Greedy"), "sample": N_("Sample")}


def tree(comparison: BeamComparison, *, key: str, most: int = 16) -> None:
    """Draw all texts of the search, or those of its last ``most`` steps."""
    show.figure(
        beam_tree(comparison.tree, most=most),
        _("Best text on top, a token a column, with its ln p. Grey: dropped. Square: ended."),
        key=key,
    )


def ranking(
    beams: Sequence[Hypothesis], comparison: BeamComparison, join: Join, *, key: str
) -> None:
    named = [(_("Beam, width {n}", n=comparison.settings.width), beam) for beam in beams]
    st.dataframe(
        _table(named, comparison, join, is_named=False), hide_index=True, width="stretch", key=key
    )
    if comparison.settings.alpha:
        alpha = f"{comparison.settings.alpha:g}"
        st.caption(
            _("Score: the sum of ln p. Rank: score / ((5 + tokens) / 6)^{alpha}.", alpha=alpha)
        )
    else:
        st.caption(_("Score: the sum of ln p, which stays fixed once a text has ended."))


def others(comparison: BeamComparison, join: Join, *, key: str) -> None:
    """Show texts found by other methods, with the same score."""
    named = [
        (_(FOUND_BY[found_by], wider=comparison.wider), text)
        for found_by, text in comparison.others
    ]
    st.dataframe(_table(named, comparison, join), hide_index=True, width="stretch", key=key)
    st.caption(
        _("Sampled at temperature 1; likely texts are often repetitive (Holtzman et al. 2020).")
    )


def conclusion(comparison: BeamComparison, join: Join) -> str:
    """Say whether a better text than the beam's best was found, and how."""
    is_ranked = bool(comparison.settings.alpha)
    if not comparison.is_missed:
        searched = {"wider": comparison.wider, "n": len(comparison.samples)}
        if is_ranked:
            return paragraph("beam/no-better-rank", **searched)
        return paragraph("beam/none-likelier", **searched)
    found_by, text = comparison.others[0]
    values: dict[str, object] = {
        "width": comparison.settings.width,
        "times": _times(comparison.times_missed),
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


def _times(times: float) -> str:
    """Return a rounded ratio: 1.3, 40, 5,000."""
    if times < 10:
        return f"{times:.2g}"
    digits = 10 ** (math.floor(math.log10(times)) - 1)
    return f"{round(times / digits) * digits:,}"


def _table(
    texts: list[tuple[str, Hypothesis]],
    comparison: BeamComparison,
    join: Join,
    *,
    is_named: bool = True,
) -> pd.DataFrame:
    columns: dict[str, list[object]] = {}
    if is_named:
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
    return pd.DataFrame(columns)


def joined_by(gap: str) -> Join:
    """Return a function that joins tokens with a gap, with whitespace made visible."""
    return lambda tokens: gap.join(map(visible, running(tokens)))
