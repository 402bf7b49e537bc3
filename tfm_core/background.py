"""Answers that a thread computes behind a page, once for all callers with the same question."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

logger = logging.getLogger(__name__)

Work = TypeVar("Work", bound=Callable[[], Any])


@dataclass(frozen=True, slots=True, eq=False)
class Asked(Generic[Work]):
    """A question. work: what computes its answer, which may say how far it is."""

    work: Work
    future: Future[Any]

    @property
    def is_void(self) -> bool:
        """Whether there is no answer, and never will be. A ValueError is one: its sentence."""
        if not self.future.done() or self.future.cancelled():
            return self.future.cancelled()
        error = self.future.exception()
        return error is not None and not isinstance(error, ValueError)


class Background:
    """Questions and their answers, computed one after another."""

    def __init__(self, name: str, *, most: int = 64) -> None:
        """Make the thread; it starts with the first question. most: answers that are kept."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Asked[Any]] = OrderedDict()
        self._most = most
        self._has_answered = False

    @property
    def asked(self) -> Mapping[Hashable, Asked[Any]]:
        """What is known and what is to come."""
        with self._lock:
            return dict(self._kept)

    @property
    def n_waiting(self) -> int:
        """How many are not answered yet."""
        return sum(not asked.future.done() for asked in self.asked.values())

    def ask(self, question: Hashable, work: Work, *, patience: float = 0.0) -> Asked[Work]:
        """Return what was asked before, or ask it; what broke is asked again.

        patience: seconds to wait for the answer, once there has been one: the first loads torch.
        """
        with self._lock:
            found = self._kept.get(question)
            if found is None or found.is_void:
                found = self._kept[question] = Asked(work, self._pool.submit(self._answer, work))
            self._kept.move_to_end(question)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)[1].future.cancel()
        if self._has_answered and patience and not found.future.done():
            with contextlib.suppress(TimeoutError):
                found.future.exception(patience)
        return found

    def wait(self) -> None:
        """Return when all that was asked so far is answered."""
        self._pool.submit(lambda: None).result()

    def _answer(self, work: Callable[[], Any]) -> Any:
        try:
            answer = work()
        except ValueError:
            raise
        except Exception:
            logger.exception("Work behind a page failed; the next request repeats it.")
            raise
        self._has_answered = True
        return answer
