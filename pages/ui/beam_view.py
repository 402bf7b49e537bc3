"""A beam search in sight: its tree, its texts ranked, and whether another way finds more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from pages.i18n import N_, _
from pages.ui import show
from pages.ui.typed import escape
from tfm_core.inspect.writing.beams import BeamComparison, Hypothesis
from tfm_core.plots.writing import beam_tree, visible

Join = Callable[[Sequence[str]], str]
FOUND_BY = {
    "wider": N_("a beam of width {wider}"),
    "greedy": N_("greedy writing"),
    "sample": N_("a sample"),
}


def tree(found: BeamComparison, *, key: str, most: int = 16) -> None:
    """Draw every text that was kept; of a long search the last ``most`` steps."""
    show.figure(
        beam_tree(found.tree, most=most),
        _(
            "Each column is one token; the best text so far is at the top, with its ln p below "
            "each token. Coloured branches survive to the end, grey ones were dropped. A square "
            "ends a text."
        ),
        key=key,
    )


def ranking(beams: Sequence[Hypothesis], found: BeamComparison, join: Join, *, key: str) -> None:
    """Show the texts of a beam, the best first."""
    named = [(_("Beam, width {n}", n=found.settings.width), beam) for beam in beams]
    st.dataframe(
        _table(named, found, join, is_named=False), hide_index=True, width="stretch", key=key
    )
    words = _(
        "Best first. The score is the sum of ln p over the written tokens; it stays fixed once "
        "a text has ended."
    )
    if found.settings.alpha:
        words += " " + _(
            "Ranked by the score over ((5 + tokens) / 6) to the power {alpha}.",
            alpha=f"{found.settings.alpha:g}",
        )
    st.caption(words)


def others(found: BeamComparison, join: Join, *, key: str) -> None:
    """Show what other ways to write found, scored as the beam's texts are."""
    named = [
        (_(FOUND_BY[found_by], wider=found.wider).capitalize(), text)
        for found_by, text in found.others
    ]
    st.dataframe(_table(named, found, join), hide_index=True, width="stretch", key=key)
    st.caption(
        _(
            "Samples are drawn at temperature 1. Likely texts are often dull or repetitive, "
            "which is why language models are sampled (Holtzman et al. 2020)."
        )
    )


def conclusion(found: BeamComparison, join: Join) -> str:
    """Say whether a better text than the beam's best was found, and how."""
    settings = found.settings
    if not found.is_missed:
        words = _(
            "**No likelier text was found** than the best of width {width}: not by a beam of "
            "width {wider}, greedy writing or {n} samples. Only trying every text would prove "
            "it."
        )
        if settings.alpha:
            words = _(
                "**No text was found that ranks higher** than the best of width {width} under "
                "this length penalty: not by a beam of width {wider}, greedy writing or {n} "
                "samples. Only trying every text would prove it."
            )
        return words.format(width=settings.width, wider=found.wider, n=len(found.samples))
    found_by, text = found.others[0]
    if settings.alpha:
        words = _(
            "**Width {width} missed a text that ranks higher**, found by {found_by}: “{text}”, "
            "{score} instead of {best} under this length penalty. A beam drops unlikely "
            "beginnings, whatever might follow."
        )
    else:
        words = _(
            "**Width {width} missed a text {times} times as likely**, found by {found_by}: "
            "“{text}”, ln p {score} instead of {best}. A beam drops unlikely beginnings, "
            "whatever might follow."
        )
    said = words.format(
        width=settings.width,
        times=_times(found.times_missed),
        found_by=_(FOUND_BY[found_by], wider=found.wider),
        text=escape(join(text.tokens)),
        score=f"{text.ranking:.2f}",
        best=f"{found.best.ranking:.2f}",
    )
    at = found.fell_out_at
    if at is not None:
        said += " " + _("The beam dropped its beginning at token {n}.", n=at + 1)
    is_greedy = found_by == "greedy"
    if not is_greedy and settings.width > 1 and found.greedy.ranking > found.best.ranking + 1e-6:
        said += " " + _(
            "Even greedy writing found a likelier text: {score}.",
            score=f"{found.greedy.ranking:.2f}",
        )
    return said


def _times(times: float) -> str:
    """Return a ratio as one says it: 1.3, 40, 5,000."""
    if times < 10:
        return f"{times:.2g}"
    digits = 10 ** (math.floor(math.log10(times)) - 1)
    return f"{round(times / digits) * digits:,}"


def _table(
    texts: list[tuple[str, Hypothesis]], found: BeamComparison, join: Join, *, is_named: bool = True
) -> pd.DataFrame:
    columns: dict[str, list[object]] = {}
    if is_named:
        columns[_("Found by")] = [found_by for found_by, _text in texts]
    columns |= {
        _("Text"): [join(text.tokens) for _by, text in texts],
        _("Score (ln p)"): [round(text.score, 3) for _by, text in texts],
    }
    if found.settings.alpha:
        columns[_("Ranked by")] = [round(text.ranking, 3) for _by, text in texts]
    columns |= {
        _("Probability"): [f"{math.exp(text.score):.3g}" for _by, text in texts],
        _("Tokens"): [text.n_written for _by, text in texts],
        _("Ended"): ["✓" if text.is_done else "" for _by, text in texts],
    }
    return pd.DataFrame(columns)


def joined_by(gap: str) -> Join:
    """Return what writes tokens with a gap between them, each as it can be seen."""
    return lambda tokens: gap.join(visible(token) for token in tokens)
