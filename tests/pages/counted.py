"""How often functions of the project are called while something happens on a page."""

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tfm_core.models.build import build_model
from tfm_core.training import checkpoints
from tfm_core.training.loop import train

SLOW = (build_model, checkpoints._read, train)
"""What no change of a control may cause: to build a model, to read its weights, to train it."""


@contextmanager
def calls_of(*functions: Callable[..., Any]) -> Iterator[Counter[str]]:
    """Count calls in the threads that start meanwhile, as the script of an ``AppTest`` does.

    Python itself counts, so whatever name a function is called by, and nothing is replaced.
    """
    codes = {inspect.unwrap(function).__code__: function.__name__ for function in functions}
    found: Counter[str] = Counter()

    def note(frame: Any, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code in codes:
            found[codes[frame.f_code]] += 1

    threading.setprofile(note)
    try:
        yield found
    finally:
        threading.setprofile(None)
