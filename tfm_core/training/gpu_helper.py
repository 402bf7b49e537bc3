"""Questions about NVIDIA GPUs, answered by a helper process.

A process that reads a GPU's memory, or times a step on it, holds some hundred MB there until it
ends. A server runs for weeks, so it starts a helper, which ends when idle, or with the server. No
helper is needed without a GPU, nor where this process already uses its GPU.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

from tfm_core.choices.config import Experiment, from_json, to_json
from tfm_core.training import devices as machine

if TYPE_CHECKING:
    from tfm_core.training.devices import Device
    from tfm_core.training.estimate import Estimate

IDLE_SECONDS = 60.0
"""Seconds without a question after which the helper ends."""


def devices() -> list[Device]:
    """Return every device of this machine; see ``devices.devices``."""
    answer: list[Device] = HELPER.ask("devices") if _would_hold_a_gpu() else machine.devices()
    return answer


def estimate(experiment: Experiment, device: str) -> Estimate:
    """Return what a run needs on a device; see ``estimate.estimate``. Raises ValueError."""
    if device.startswith("cuda") and _would_hold_a_gpu():
        answer: Estimate = HELPER.ask("estimate", to_json(experiment), device)
        return answer
    from tfm_core.training.estimate import estimate as measure

    return measure(experiment, device)


def _would_hold_a_gpu() -> bool:
    import torch

    has_its_own = bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
    return torch.cuda.is_available() and not has_its_own


class Helper:
    """A process that answers questions one by one; it is started by the first."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        """Start nothing yet."""
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._timer: threading.Timer | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def ask(self, *question: str) -> Any:
        """Return the answer. Raises what answering raised: ValueError; else RuntimeError."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if not self.is_running:
                self._end()
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tfm_core.training.gpu_helper"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            answer = self._answer(question)
            self._timer = threading.Timer(self._idle_seconds, self.close)
            self._timer.daemon = True
            self._timer.start()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _answer(self, question: tuple[str, ...]) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(question, self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)  # what our own process says
        except (OSError, EOFError, pickle.UnpicklingError):
            code = self._process.wait()
            return RuntimeError(f"The process that was asked {question[0]} ended with code {code}.")

    def close(self) -> None:
        """End the process; the next question starts another."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.communicate()  # its input closes, and it leaves
            self._process = None


HELPER = Helper()
"""The helper of this process."""


def main() -> None:
    """Answer the questions on standard input until it closes."""
    import os

    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    while True:
        try:
            name, *rest = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer: object
        try:
            if name == "devices":
                answer = machine.devices()
            else:
                from tfm_core.training.estimate import estimate as measure

                answer = measure(from_json(rest[0]), rest[1])
        except ValueError as error:
            answer = error
        except Exception as error:
            answer = RuntimeError(f"{type(error).__name__}: {error}")
        pickle.dump(answer, output)
        output.flush()


if __name__ == "__main__":
    main()
