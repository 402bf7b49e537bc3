"""Tensors by sight: what view, transpose, einsum and their kin do to a small tensor."""

from __future__ import annotations

import streamlit as st

from pages.tensors import controls
from pages.tensors import sight as tensors_sight
from pages.ui import show
from tfm_core.inspect.tensors.sight import sight


def page() -> None:
    """Show one operation on a tensor of the user's, and the mistakes that are worth seeing."""
    show.header("tensors")
    operation = controls.operation()
    given, seen_code = st.columns(2, gap="medium")
    try:
        with given:
            source, values, second = controls.inputs(operation)
        result = sight(operation.name, source, values, second)
    except ValueError as error:
        with given:
            show.problem(error)
    else:
        with seen_code:
            st.code(result.code, language="python", wrap_lines=True)
        if result.after is None:
            tensors_sight.refused(result)
        else:
            tensors_sight.result(result)
    tensors_sight.used(operation)
    controls.own_mistakes(operation)
    controls.gallery()
    tensors_sight.numpy()


page()
