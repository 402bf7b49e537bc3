"""What ``benchmarks.heads`` serves: 8 by 8 heads of 64 by 64, and a button to change them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.components.head_grid import head_grid

LAYERS, HEADS, TOKENS = 8, 8, 64


@st.cache_resource
def two_models() -> list[npt.NDArray[np.float16]]:
    """Return two sets of maps (L, H, Q, K), to be shown in turn."""
    rng = np.random.default_rng(0)
    drawn = rng.exponential(size=(2, LAYERS, HEADS, TOKENS, TOKENS))
    return list((drawn / drawn.sum(-1, keepdims=True)).astype(np.float16))


clicks = st.session_state.setdefault("clicks", 0)
if st.button("Next"):
    clicks = st.session_state["clicks"] = clicks + 1
tokens = [f"token {place}" for place in range(TOKENS)]
head_grid(
    two_models()[clicks % 2],
    tokens,
    tokens,
    chosen=(0, 0),
    on_pick=lambda layer, head: None,
    theme="light",
    key="grid",
    top=None,
)
