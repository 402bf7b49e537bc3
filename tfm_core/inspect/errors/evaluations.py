"""Answers of runs' weights that are computed in the background, one after another, and kept.

One thread serves all who ask, so that a training keeps its processors.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from tfm_core.inspect.errors.answers import Answers, answers, weights_mark
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

_MAX_KEPT, _MAX_WAITING = 24, 8


@dataclass(slots=True)
class Evaluation:
    """Answers that are being computed. share: the progress."""

    future: Future[Answers] = field(default_factory=Future)
    share: float = 0.0

    @property
    def is_void(self) -> bool:
        """Whether there is no answer, and never will be: the next request tries again."""
        future = self.future
        return future.cancelled() or (future.done() and future.exception() is not None)

    def report(self, share: float) -> None:
        """Take the progress."""
        self.share = share


class Evaluations:
    """Those of this process, by weights."""

    def __init__(self) -> None:
        """Make the thread; it starts with the first one."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="mistakes")
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int, int], Evaluation] = OrderedDict()

    @property
    def n_waiting(self) -> int:
        """How many are not done yet."""
        with self._lock:
            return sum(not one.future.done() for one in self._kept.values())

    def enqueue(self, run: Run, step: int) -> Evaluation:
        """Return the evaluation of a step's weights, cached or new.

        Raises ValueError, in a sentence, without such weights or if too many wait.
        """
        key = (str(run.folder), step, weights_mark(run, step))
        n_waiting = self.n_waiting
        with self._lock:
            found = self._kept.get(key)
            if found is None or found.is_void:
                if n_waiting >= _MAX_WAITING:
                    raise StudentError(
                        "The server is busy with other runs; try again in a few seconds."
                    )
                found = self._kept[key] = Evaluation()
                found.future = self._pool.submit(answers, run, step, found.report)
            self._kept.move_to_end(key)
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)[1].future.cancel()
            return found
