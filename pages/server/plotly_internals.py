"""Plotly takes a module that another thread is importing for one that is there.

``get_module(name, should_load=False)`` looks into ``sys.modules``: a figure that is made while
pandas is imported for the first time would not find ``pandas.Series``.
"""

from __future__ import annotations

from typing import Any

from _plotly_utils import basevalidators, optional_imports, utils  # type: ignore[import-untyped]
from plotly import basedatatypes

_get_module = optional_imports.get_module


def get_module(name: str, should_load: bool = True) -> Any:
    """Return a module as plotly does, None while it is being imported."""
    module = _get_module(name, should_load)
    is_begun = getattr(getattr(module, "__spec__", None), "_initializing", False)
    return None if is_begun and not should_load else module


def install() -> None:
    """Let all of plotly that figures are made with look so."""
    for part in (basedatatypes, basevalidators, optional_imports, utils):
        part.get_module = get_module
