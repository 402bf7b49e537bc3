"""The engine: configs, layers, models, tasks, training, runs. It never imports streamlit.

In a notebook: ``tfm_core.look(model, *inputs)`` records the attention of any PyTorch model, and
``tfm_core.runs.open("…")`` reads what was trained. Both load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfm_core import runs as runs
    from tfm_core.looking import look as look

__all__ = ["look", "runs"]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name == "runs":
        return import_module("tfm_core.runs")
    if name == "look":
        return import_module("tfm_core.looking").look
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "annotations", "import_module"})
