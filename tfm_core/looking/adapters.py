"""Callbacks for loops of others: they report what ``transformers.Trainer`` and Lightning do.

Both packages are imported when a callback of theirs is made. A callback is a context, too, so that
the run learns of an error that the loop raises: ``with look.for_trainer(...) as callback:``.
Transformers tells its callbacks of none: without the context, a thread sees that the loop is gone.
"""

from __future__ import annotations

import importlib
import math
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from types import FrameType
from typing import Any

from tfm_core.looking.training import Watched
from tfm_core.sentences import StudentError

_ACCURACY = ("accuracy", "acc")
_LOOPS = ("_inner_training_loop", "train")  # of Trainer
_LOST_SECONDS = 2.0


class _Reports:
    """What both callbacks do: begin a run with the loop, and end it with the loop."""

    def __init__(self, probe: Any, given: Mapping[str, Any]) -> None:
        self._probe, self._begin = probe, dict(given)
        self.watched: Watched | None = None
        self._is_closed = threading.Event()

    def __enter__(self) -> Any:
        """Return the callback."""
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """End the run as the loop ended."""
        self._close(error)

    def _open(self, model: Any, steps: int | None) -> None:
        self._close(None)
        given: Any = dict(self._begin)
        known = {name: given.pop(name, None) for name in ("name", "store")}
        self.watched = Watched(
            model,
            probe=self._probe,
            every=given.pop("every", 100),
            steps=steps,
            words=given,
            **known,
        )

    def _follow(self, loop: FrameType | None) -> None:
        """End the run where a loop of this thread ends without a word. loop: its frame."""
        closed, watched, thread = self._is_closed, self.watched, threading.get_ident()

        def watch() -> None:
            n_missed = 0  # once may be on the way out, to the context that reports an error
            while n_missed < 2 and not closed.wait(_LOST_SECONDS):
                n_missed = 0 if _is_running(loop, thread) else n_missed + 1
            if n_missed == 2 and watched is not None:
                watched.lose()

        if loop is not None:
            threading.Thread(target=watch, name="look.for_trainer", daemon=True).start()

    def _close(self, error: BaseException | None) -> None:
        self._is_closed.set()
        self._is_closed = threading.Event()
        if self.watched is not None:
            watched, self.watched = self.watched, None
            watched.close(error)

    def _measure(self, metrics: Mapping[str, Any], prefixes: Sequence[str]) -> None:
        loss = _found(metrics, prefixes, ("loss",))
        if self.watched is not None and loss is not None:
            self.watched.measured(loss, accuracy=_share(_found(metrics, prefixes, _ACCURACY)))


def for_trainer(probe: Any, given: Mapping[str, Any]) -> Any:
    """Return a callback of ``transformers.Trainer``; see ``look.for_trainer``."""
    base = _module("transformers", "transformers").TrainerCallback

    class TrainerReports(_Reports, base):  # type: ignore[misc, valid-type]
        """Reports to a run."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            if state.is_world_process_zero:
                self._open(more["model"], state.max_steps if state.max_steps > 0 else None)
                self._follow(_frame_of(_LOOPS))

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            if self.watched is not None:
                self.watched.passed(state.global_step)

        def on_log(
            self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any
        ) -> None:
            if self.watched is None or "loss" not in (logs or {}):
                return
            names = ("learning_rate", "grad_norm", "epoch")
            self.watched.step(
                logs["loss"],
                step=state.global_step,
                accuracy=_share(_found(logs, ("",), _ACCURACY)),
                **{name: logs[name] for name in names if logs.get(name) is not None},
            )

        def on_evaluate(
            self, args: Any, state: Any, control: Any, metrics: Any = None, **more: Any
        ) -> None:
            self._measure(metrics or {}, ("eval_",))

        def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            if self.watched is not None and control.should_training_stop:
                self.watched.stops_at(state.global_step)
            self._close(None)

    return TrainerReports(probe, given)


def for_lightning(probe: Any, given: Mapping[str, Any]) -> Any:
    """Return a callback of Lightning's Trainer; see ``look.for_lightning``."""
    base = _module("lightning", "lightning.pytorch", "pytorch_lightning").Callback

    class LightningReports(_Reports, base):  # type: ignore[misc, valid-type]
        """Reports to a run."""

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero:
                steps = trainer.estimated_stepping_batches
                self._open(pl_module, int(steps) if math.isfinite(steps) else None)

        def on_train_batch_end(
            self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
            watched, step = self.watched, trainer.global_step
            if watched is None or loss is None or step <= watched.last_step:
                return
            metrics = trainer.callback_metrics
            watched.step(
                loss,
                step=step,
                accuracy=_share(_found(metrics, ("train_", ""), _ACCURACY)),
                epoch=trainer.current_epoch,
            )

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if not trainer.sanity_checking:
                self._measure(trainer.callback_metrics, ("val_", "valid_", "validation_"))

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            self._close(exception)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            if self.watched is not None and trainer.should_stop:
                self.watched.stops_at(trainer.global_step)
            self._close(None)

    return LightningReports(probe, given)


def _frame_of(names: Collection[str]) -> FrameType | None:
    """Return the innermost frame of this thread that runs a function of one of these names."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name not in names:
        frame = frame.f_back
    return frame


def _is_running(frame: FrameType | None, thread: int) -> bool:
    """Return whether a frame is still on the stack of a thread."""
    current = sys._current_frames().get(thread)
    while current is not None and current is not frame:
        current = current.f_back
    return current is not None


def _module(package: str, *names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise StudentError("This callback needs {package}: pip install {package}.", package=package)


def _found(metrics: Mapping[str, Any], prefixes: Sequence[str], names: Sequence[str]) -> Any:
    keys = (f"{prefix}{name}" for prefix in prefixes for name in names)
    return next((metrics[key] for key in keys if metrics.get(key) is not None), None)


def _share(value: Any) -> Any:
    """Return an accuracy, None for what is no share: others write percent, or a sum."""
    try:
        return value if value is not None and 0 <= float(value) <= 1 else None
    except (TypeError, ValueError, RuntimeError):
        return None
