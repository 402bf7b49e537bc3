"""How a token is drawn: temperature, top-k, top-p, seed, samples and length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from pages.i18n import _

if TYPE_CHECKING:
    from tfm_core.decoding import SamplingConfig


def controls(*, is_greedy: bool) -> tuple[SamplingConfig, tuple[int, ...], int]:
    """Return the sampling settings, a seed per sample, and the length."""
    from tfm_core.decoding import SamplingConfig

    with st.container(border=True):
        first = st.columns(3)
        if is_greedy:
            with first[0]:
                length = _length()
            return SamplingConfig(temperature=0), (0,), length
        with first[0]:
            temperature = st.slider(
                _("Temperature"),
                0.0,
                2.0,
                0.8,
                0.05,
                key="gpt-temperature",
                help=_("Divides the logits: 0 is greedy, 1 the model itself."),
                persist_state="session",
            )
        with first[1]:
            top_k = st.number_input(
                _("Top-k"),
                0,
                1000,
                0,
                key="gpt-top-k",
                help=_("Sample from this many top tokens; 0: all."),
                persist_state="session",
            )
        with first[2]:
            top_p = st.slider(
                _("Top-p"),
                0.05,
                1.0,
                1.0,
                0.05,
                key="gpt-top-p",
                help=_("Sample from the fewest tokens with this total probability."),
                persist_state="session",
            )
        second = st.columns(3)
        with second[0]:
            seed = st.number_input(
                _("Seed"), 0, 10**6, 0, key="gpt-seed", persist_state="session",
                help=_("The same seed gives the same text."),
            )  # fmt: skip
        with second[1]:
            n = st.number_input(
                _("Samples"), 1, 4, 2, key="gpt-samples", persist_state="session",
                help=_("Texts side by side, with successive seeds."),
            )  # fmt: skip
        with second[2]:
            length = _length()
    seeds = tuple(int(seed) + i for i in range(int(n)))
    return SamplingConfig(float(temperature), int(top_k), float(top_p)), seeds, length


def _length() -> int:
    return int(
        st.number_input(
            _("Tokens to write"), 1, 400, 80, 10, key="gpt-length", persist_state="session"
        )
    )
