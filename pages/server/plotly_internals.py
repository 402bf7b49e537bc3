"""Plotly takes a module that another thread is importing for one that is there.

``get_module(name, should_load=False)`` looks into ``sys.modules``: a figure that is made while
pandas is imported for the first time would not find ``pandas.Series``.
"""

from __future__ import annotations

import sys
from typing import Any

from plotly import (
    basedatatypes,  # noqa: F401 (which imports all that makes figures)
    optional_imports,
)

_get_module = optional_imports.get_module


def get_module(name: str, should_load: bool = True) -> Any:
    """Return a module as plotly does, None while it is being imported."""
    module = _get_module(name, should_load)
    is_begun = getattr(getattr(module, "__spec__", None), "_initializing", False)
    return None if is_begun and not should_load else module


def install() -> None:
    """Let all of plotly that figures are made with look so."""
    for name, part in [*sys.modules.items()]:
        is_plotlys = name.partition(".")[0] in ("plotly", "_plotly_utils")
        if is_plotlys and vars(part).get("get_module") is _get_module:
            vars(part)["get_module"] = get_module
