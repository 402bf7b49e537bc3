"""The engine: configs, layers, models, tasks, training, runs. It never imports streamlit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfm_core.looking import look as look

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Return ``look``, whose packages load when somebody asks for it."""
    if name != "look":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tfm_core.looking import look

    return look
