"""Train small Transformers and look inside them. Never imports streamlit.

Read what was trained, here or in the app:

    >>> run = tfm_core.runs.open("recorded-korean")  # an id, the start of one, a name or a folder
    >>> run.curves()  # a data frame: step, split, loss, accuracy, learning_rate, …
    >>> run.attention(step=1000, layer=0, example=1).weights  # (heads, queries, keys)
    >>> run.model()  # the trained torch.nn.Module

Record every attention map of a module of yours, or your own training loop, live in the app:

    >>> tfm_core.look(model, ids)
    >>> with tfm_core.look.training(model, name="My GPT", probe=ids) as run:
    ...     run.step(loss)  # after each step of yours

Train without the app:

    >>> from tfm_core.choices.presets import PRESETS
    >>> from tfm_core.training.loop import build, train
    >>> trainer = build(PRESETS["translate"].experiment)
    >>> for event in train(trainer): ...  # frozen events with plain numbers

``docs/architecture.md`` lists the packages and ten files to read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfm_core import runs as runs
    from tfm_core.looking import look as look

__all__ = ["look", "runs"]
__version__ = "0.3.0"


def __getattr__(name: str) -> Any:
    if name == "runs":
        return import_module("tfm_core.runs")
    if name == "look":
        return import_module("tfm_core.looking").look
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "annotations", "import_module"})
