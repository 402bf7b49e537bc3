"""The mask of the lab as code, in both forms, and what True means where."""

from __future__ import annotations

import streamlit as st

from pages.ui import masks_controls as controls
from pages.ui.masks_controls import Choice
from pages.ui.words import _, content
from tfm_core.inspect import mask_code
from tfm_core.inspect.mask_lab import Flow, Projected


def code(choice: Choice, projected: Projected, flow: Flow, *, was_clicked: bool) -> None:
    """Show code that makes this mask, turns it into the other form and hands it to PyTorch."""
    st.markdown(content("masks_conventions"))
    st.dataframe(
        [
            {
                _("where"): found.where,
                _("True means"): found.true_means,
                _("shape"): found.shape,
                _("a float mask is"): found.additive,
            }
            for found in mask_code.CONVENTIONS
        ],
        hide_index=True,
        width="stretch",
    )
    left, right = st.columns(2)
    with left:
        st.markdown(_("**This mask**, bool, True = may attend"))
        made = mask_code.snippet(
            choice.kind, projected.query, projected.key, **controls.mask_arguments(choice)
        )
        st.code(mask_code.literal(flow.allowed) if was_clicked else made, language="python")
        st.markdown(_("**Additive form**, and back"))
        st.code(mask_code.ADDITIVE, language="python")
    with right:
        st.markdown(_("**Scaled dot-product attention**: True = may attend"))
        st.code(mask_code.HOUSE_SDPA, language="python")
        st.markdown(_("**nn.MultiheadAttention**: True = forbidden"))
        st.code(mask_code.HOUSE_MHA, language="python")
