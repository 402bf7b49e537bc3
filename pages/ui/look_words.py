"""A map in words, for who cannot see it: what each query reads most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.ui.run_words import escape
from pages.ui.words import _

MOST_ROWS = 64


def map_in_words(
    weights: npt.NDArray[Any], query_tokens: Sequence[str], key_tokens: Sequence[str]
) -> None:
    """Offer a map (Q, K) as a list: each query and the key that gets most of it."""
    with st.expander(_("This map in words"), icon=":material/text_fields:"):
        st.markdown("\n".join(f"- {line}" for line in lines(weights, query_tokens, key_tokens)))
        if len(query_tokens) > MOST_ROWS:
            st.caption(
                _("The first {n} of {all} rows; “Take it away” has every number.").format(
                    n=MOST_ROWS, all=len(query_tokens)
                )
            )


def lines(
    weights: npt.NDArray[Any], query_tokens: Sequence[str], key_tokens: Sequence[str]
) -> list[str]:
    """Return a sentence for each query, MOST_ROWS at most, safe in Markdown."""
    rule = _("{i}, “{query}”, reads “{key}” ({place}) most: {weight}")
    best = np.asarray(weights).argmax(-1)
    return [
        rule.format(
            i=i + 1,
            query=escape(query),
            key=escape(key_tokens[best[i]]),
            place=best[i] + 1,
            weight=f"{weights[i, best[i]]:.3f}",
        )
        for i, query in enumerate(query_tokens[:MOST_ROWS])
    ]
