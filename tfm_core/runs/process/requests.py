"""Requests to a worker while it trains: pause, resume, step, stop, snapshot, turn a setting.

A request is an empty file, written whole and read in order: ``{time}-{kind}``. The kind of a turn
has the setting and its new value: ``turn.training.learning_rate=0.003``.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.runs.queue import waiting_line
from tfm_core.sentences import N_

RequestKind = Literal["pause", "resume", "step", "stop", "snapshot"]
KINDS: tuple[RequestKind, ...] = get_args(RequestKind)
_TURN = r"turn\.((?:training|model)\.[a-z_]{1,40})=([0-9.e+-]{1,30})"
FORM = re.compile(rf"\d{{20}}-[0-9a-f]{{6}}-({'|'.join(KINDS)}|{_TURN})", re.ASCII)
"""The names of requests' files."""


def turning(setting: str, value: float) -> str:
    """Return the request that changes a setting."""
    return f"turn.{setting}={value!r}"


def turned(request: str) -> tuple[str, float] | None:
    """Return setting and value of a request to change one, None for another request."""
    found = re.fullmatch(_TURN, request)
    try:
        return None if found is None else (found[1], float(found[2]))
    except ValueError:
        return None


def is_request(text: str) -> bool:
    """Return whether a worker knows such a request."""
    return text in KINDS or turned(text) is not None


def drop(folder: Path, kind: str) -> None:
    """Leave a request for the worker of a run. Raises OSError."""
    name = f"{time.time_ns():020d}-{secrets.token_hex(3)}-{kind}"
    (folder / "requests").mkdir(exist_ok=True)
    write_bytes(folder / "requests" / name, b"")


def take(folder: Path) -> list[str]:
    """Return the waiting requests, oldest first, and remove them with any invalid files."""
    try:
        names = sorted(os.listdir(folder / "requests"))
    except OSError:
        return []
    taken: list[str] = []
    for name in names:
        if name.startswith("."):  # being written
            continue
        try:
            (folder / "requests" / name).unlink()
        except OSError:
            continue
        if (found := FORM.fullmatch(name)) is not None:
            taken.append(found[1])
    return taken


RUNNING_SECONDS = 0.05
PAUSED_SECONDS = 0.03
BY_HAND = N_("Stopped by hand.")
ASKED_TO_END = N_("Stopped by the machine.")


class Control:
    """Takes requests between steps; ``stop_reason`` can be set from a signal handler too."""

    def __init__(
        self, folder: Path, *, max_seconds: float | None = None, max_pause: float | None = None
    ) -> None:
        """Listen in a run's folder; stop by itself after ``max_seconds``, pauses left out.

        max_pause: after so many seconds a paused run is stopped as soon as others wait.
        """
        self.folder = folder
        self.stop_reason: str | None = None
        self.is_paused = False
        self.is_stepping = False
        self._waiting: deque[str] = deque()
        self._looked = 0.0
        self._limit, self._max_pause = max_seconds, max_pause
        self._clock: Callable[[], float] = time.monotonic
        self._began, self._paused_at = time.monotonic(), 0.0

    def begin(self, seconds: float, clock: Callable[[], float]) -> None:
        """Count from here on by another clock, with the seconds that the run trained before."""
        self._clock, self._began = clock, clock() - seconds

    def after_step(
        self,
        *,
        pause: Callable[[], None],
        go_on: Callable[[], None],
        snapshot: Callable[[], None],
        turn: Callable[[str, float], None],
    ) -> bool:
        """Answer requests, and wait while paused; False means that the run shall stop.

        ``pause`` and ``go_on`` are called at a change of state, ``snapshot`` takes one, ``turn``
        gets a setting and its new value.
        """
        if self.is_stepping:
            self._pause(pause)
        elif not self.is_paused and time.monotonic() - self._looked < RUNNING_SECONDS:
            return self._may_go_on()
        while self._may_go_on():
            self._look()
            while self._waiting and self.stop_reason is None:
                kind = self._waiting.popleft()
                if (turning := turned(kind)) is not None:
                    turn(*turning)
                elif self._answer(kind, pause=pause, go_on=go_on, snapshot=snapshot):
                    return True
            if not self.is_paused:
                break
            self._give_way()
            time.sleep(PAUSED_SECONDS)
        return self._may_go_on()

    def is_stop_asked(self) -> bool:
        """Look, before there are steps, whether the run shall stop; all else waits."""
        if time.monotonic() - self._looked >= RUNNING_SECONDS:
            self._look()
            if "stop" in self._waiting:
                self.stop_reason = BY_HAND
        return not self._may_go_on()

    def _answer(
        self,
        kind: str,
        *,
        pause: Callable[[], None],
        go_on: Callable[[], None],
        snapshot: Callable[[], None],
    ) -> bool:
        """Answer one request; True means: one more step, now."""
        if kind == "snapshot":
            snapshot()
        elif kind == "stop":
            self.stop_reason = BY_HAND
        elif kind == "resume" and self.is_paused:
            self._go_on()
            go_on()
        elif kind == "step" and self.is_paused:
            self._go_on()
            self.is_stepping = True
            return True
        elif kind in {"pause", "step"} and not self.is_paused:
            self._pause(pause)
        return False

    def _pause(self, pause: Callable[[], None]) -> None:
        self.is_stepping, self.is_paused = False, True
        self._paused_at = self._clock()
        pause()

    def _go_on(self) -> None:
        self.is_paused = False
        self._began += self._clock() - self._paused_at

    def _give_way(self) -> None:
        """Stop a run that has been paused for long, where others wait for its place."""
        limit = self._max_pause
        if limit is None or self._clock() - self._paused_at < limit:
            return
        if waiting_line.ids(self.folder.parent):
            self.stop_reason = N_(
                "Stopped after a pause of {seconds:,.0f} seconds because other runs wait.",
                seconds=limit,
            )

    def _look(self) -> None:
        self._looked = time.monotonic()
        self._waiting.extend(take(self.folder))

    def _may_go_on(self) -> bool:
        if self._limit is None or self.stop_reason is not None or self.is_paused:
            return self.stop_reason is None
        if self._clock() - self._began > self._limit:
            self.stop_reason = N_(
                "Stopped at the limit of {limit:,.0f} seconds.", limit=self._limit
            )
        return self.stop_reason is None
