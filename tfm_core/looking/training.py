"""Record a training loop of the caller's own as a run: its curves, maps and answers.

The loop stays the caller's. What it reports is written as the app's own trainings are: events, a
status with a heartbeat, snapshots of fixed examples. Nothing here may end that training: a full
disk or a look that fails ends the recording, and the status of the run says so.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn

from tfm_core import settings
from tfm_core.looking import Words, foreign
from tfm_core.looking.forward import forward
from tfm_core.looking.result import Look
from tfm_core.runs import labels, snapshots, thinned
from tfm_core.runs.disk.failures import refusal
from tfm_core.runs.disk.locks import RunLock, RunLocked
from tfm_core.runs.process.identity import process_id
from tfm_core.runs.process.recorder import Recorder, keeps
from tfm_core.runs.process.requests import BY_HAND
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, Status
from tfm_core.runs.store import RunStore
from tfm_core.sentences import N_, Sentence, StudentError, joined
from tfm_core.training.events import Finished, Measured, Split, to_record

MAX_SNAPSHOTS = 200
"""After each so many snapshots the next ones are twice as many steps apart."""
_NEAR = 0.1
"""How far a first loss may lie from that of even probabilities, as a share of it."""
_STATUS_SECONDS, _THINNED_SECONDS = 1.0, 60.0


class Watched:
    """A training that is recorded as a run. Use it as a context, or call ``close``.

    run: the run, in the folder of runs.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        probe: Any,
        name: str | None,
        every: int,
        steps: int | None,
        store: RunStore | None,
        words: Words,
    ) -> None:
        """Look at the model once and begin a run; see ``look.training``."""
        _check_count("every", every)
        if steps is not None:
            _check_count("steps", steps)
        if unknown := sorted(words.keys() - Words.__annotations__.keys()):
            raise StudentError(
                "look.training has no {name}; it takes {known}.",
                name=unknown[0],
                known=", ".join(Words.__annotations__),
            )
        given = foreign.Given.of(probe, words)
        self._model, self._given, self._answers = model, given, words.get("answers")
        self._every, self._total = every, steps
        self._n_classes, self._begun = 1, dict[str, Any]()
        self._step, self._reported, self._taken, self._n_snapshots = 0, 0, 0, 0
        self._pending: dict[str, Any] | None = None
        self._unread: list[tuple[int, Any]] = []  # losses, those of a GPU not waited for
        self._n_bad, self._first_bad, self._last_good = 0, 0, 0  # losses that are no numbers
        self._is_over = self._is_blind = False
        self._note: Sentence | None = None
        look = self._look()
        self._plan = foreign.plan_of(look)
        items = self._plan.items(given)
        self._n_items = len(items)
        said = self._said()
        most = settings.read().limits.max_attention
        self._n_attended = max(1, min(len(items), most // max(1, self._plan.n_weights)))
        self._device = str(next((one.device for one in model.parameters()), "cpu"))
        begun = Status("starting", total_steps=steps or 0, device=self._device)
        begun = begun.with_process(process_id())
        probe = {"kind": "text", "items": items, "n_attended": self._n_attended}
        self.run: Run = (RunStore() if store is None else store).bring(
            self._plan.experiment(look),
            begun,
            lambda folder: snapshots.write_probe(folder, probe),
            name=labels.clean_name((name or look.model)[: labels.MAX_NAME]),
        )
        self._hold = RunLock(self.run.folder)
        self._recorder = Recorder(self._hold, begun, every=_STATUS_SECONDS)
        self._recorder.__enter__()
        self._clock_begin, self._cpu_begin = self._recorder.clock(), time.process_time()
        self._thinned_at = time.monotonic()
        atexit.register(self._at_exit, os.getpid())
        self._start(look, said)

    def __repr__(self) -> str:
        """Return what is recorded, and where."""
        return f"{self.run.meta.name}: step {self._step:,}, in {self.run.folder}"

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the run as the loop ended."""
        self.close(error)

    # ---- what the loop reports

    def step(
        self,
        loss: Any,
        *,
        accuracy: Any = None,
        learning_rate: Any = None,
        grad_norm: Any = None,
        epoch: Any = None,
        step: int | None = None,
    ) -> None:
        """Report that a batch was learned from; every so many steps look inside.

        loss, accuracy: of that batch, numbers or tensors of one element; accuracy from 0 to 1. A
        tensor on a GPU is waited for only where its value is written down. step: its number, by
        default one more than the last. Raises StudentError for other values.
        """
        number = self._step + 1 if step is None else step
        is_whole = isinstance(number, int) and not isinstance(number, bool)
        if not is_whole or number <= self._reported or number < self._step:
            raise StudentError(
                "step is {number}, but the last was {last}; steps count upwards.",
                number=str(number),
                last=self._reported,
            )
        self._reported = number
        values = {
            "loss": loss,
            "accuracy": accuracy,
            "learning_rate": learning_rate,
            "grad_norm": grad_norm,
            "epoch": epoch,
        }
        self._pending = {
            name: _checked(name, value)
            for name, value in values.items()
            if value is not None or name == "loss"
        }
        self._unread.append((number, self._pending["loss"]))
        self._advance(number, float(epoch or 0))
        if keeps(number, self._total or number + 1):
            self._record_pending()
        self._look_in_time()

    def passed(self, step: int) -> None:
        """Report that a step was made whose loss is not known."""
        if step > self._step:
            self._record_pending()
            self._advance(step, self._recorder.status.epoch)
            self._look_in_time()

    def stops_at(self, step: int) -> None:
        """Take a step as the last one of the loop, which ends it early on purpose."""
        self._total = min(step, self._total or step)

    @property
    def last_step(self) -> int:
        """The number of the newest step."""
        return self._step

    def _advance(self, step: int, epoch: float) -> None:
        self._step = step
        total = step if self._total is None else max(self._total, step)
        seconds = self._recorder.clock() - self._clock_begin
        self._recorder.progress(step=step, epoch=epoch, seconds=seconds, total_steps=total)

    def _look_in_time(self) -> None:
        if self._step - self._taken >= self._every:
            self._record_pending()
            self._snapshot()

    def measured(self, loss: Any, *, accuracy: Any = None, split: Split = "validation") -> None:
        """Report a measurement on unseen examples. split: ``validation`` or ``test``."""
        if split not in ("validation", "test"):
            raise StudentError("split is “{split}”; give validation or test.", split=str(split))
        mean = _number("loss", _checked("loss", loss))
        share = math.nan
        if accuracy is not None:
            share = _number("accuracy", _checked("accuracy", accuracy))
        self._record(to_record(Measured(self._step, split, mean, share, sequence_accuracy=None)))

    def close(self, error: BaseException | None = None) -> None:
        """End the run; once is enough. error: what ended the loop."""
        self._record_pending()
        state, reason = self._ending(error)
        if state == "finished":
            if self._taken < self._step:
                self._snapshot()
            seconds = self._recorder.status.seconds
            self._record(to_record(Finished(self._step, seconds)))
        if state == "failed" and error is not None:
            self._log(error)
        if not self._is_over:
            self._end(state, reason or self._remark)
        with contextlib.suppress(OSError):  # closed before
            self._recorder.__exit__()

    # ---- beginning and end

    def _start(self, look: Look, said: list[str] | None) -> None:
        remarks = (*self._plan.left_out, *look.unseen)
        try:
            self._recorder.change("running")
        except OSError as error:
            self._give_up(error)
            return
        self._n_classes = _n_classes(self._model, look)
        self._begun = {
            "event": "started",
            "step": 0,
            "total_steps": self._total,
            "n_parameters": look.n_parameters,
            "device": self._device,
            "remark": str(joined(*remarks)) if remarks else None,
        }
        self._record(self._begun)
        self._keep(look, said)

    def _ending(self, error: BaseException | None) -> tuple[State, Sentence | str | None]:
        """Return how the loop ended, and why."""
        if isinstance(error, KeyboardInterrupt):
            return "stopped", BY_HAND
        if error is not None:
            return "failed", N_(
                "{name}: {splitlines} (details in worker.log in the run's folder)",
                name=type(error).__name__,
                splitlines=_first_line(error),
            )
        if self._first_bad > self._last_good:
            return "failed", N_(
                "The loss is not a number from step {step:,} on.", step=self._first_bad
            )
        if self._total is not None and self._step < self._total:
            return "stopped", N_(
                "The loop ended at step {step:,} of {total:,}.", step=self._step, total=self._total
            )
        return "finished", None

    def _at_exit(self, pid: int) -> None:
        """End a run that nothing closed: with the error that ends the program, if one does."""
        if os.getpid() == pid and not self._is_over:
            self.close(getattr(sys, "last_value", None))

    def lose(self) -> None:
        """End the run of a loop that is over without having said how."""
        if not self._is_over:
            self._record_pending()
            words = N_("The loop ended at step {step:,} without an error message.", step=self._step)
            self._end("failed", words)
            with contextlib.suppress(OSError):
                self._recorder.__exit__()

    def _end(self, state: State, reason: Sentence | str | None) -> None:
        self._is_over = True
        atexit.unregister(self._at_exit)
        self._recorder.stop_heartbeat()
        with contextlib.suppress(OSError):  # of a full disk; the events themselves are there
            thinned.keep(self.run.folder)
        self._hold.release()
        try:
            self._recorder.change(state, reason)
        except OSError as error:
            warnings.warn(str(refusal(error)), RuntimeWarning, stacklevel=3)

    def _give_up(self, error: OSError) -> None:
        """End the recording, and leave the training alone."""
        words = joined(
            refusal(error),
            N_("The recording ended at step {step:,}; the training went on.", step=self._step),
        )
        warnings.warn(str(words), RuntimeWarning, stacklevel=4)
        self._end("failed", words)

    def _log(self, error: BaseException) -> None:
        with contextlib.suppress(OSError):
            path = self.run.folder / "worker.log"
            path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")

    # ---- events and snapshots

    def _record(self, record: Mapping[str, Any]) -> None:
        if self._is_over:
            return
        try:
            self._recorder.record({k: v for k, v in record.items() if v is not None})
            if time.monotonic() - self._thinned_at > _THINNED_SECONDS:
                self._thinned_at = time.monotonic()
                thinned.keep(self.run.folder)
        except RunLocked:  # this process slept, and somebody took the run
            self._is_over = True
        except OSError as error:
            self._give_up(error)

    def _record_pending(self) -> None:
        if self._pending is None:
            return
        values = {name: _number(name, value) for name, value in self._pending.items()}
        self._pending = None
        self._count_losses()
        self._recorder.note(self._remark)
        if self._n_classes > 1:
            self._record_guessing(values["loss"])
        self._record(
            {
                "event": "step",
                "step": self._step,
                **{name: value for name, value in values.items() if math.isfinite(value)},
                "seconds": round(self._recorder.status.seconds, 3),
                "cpu_seconds": round(time.process_time() - self._cpu_begin, 3),
            }
        )

    def _count_losses(self) -> None:
        """Count which losses are no numbers; the first of them is written down."""
        unread, self._unread = self._unread, []
        for step, loss in unread:
            if math.isfinite(_number("loss", loss)):
                self._last_good = step
                continue
            self._n_bad += 1
            if self._n_bad == 1:
                self._first_bad = step
                if step < self._step:
                    self._record({"event": "step", "step": step})

    @property
    def _remark(self) -> Sentence | None:
        if not self._n_bad:
            return self._note
        bad = N_(
            "{n:,} of {total:,} losses are not numbers, the first at step {step:,}. Does a batch "
            "have no targets?",
            n=self._n_bad,
            total=self._reported,
            step=self._first_bad,
        )
        return bad if self._note is None else joined(bad, self._note)

    def _record_guessing(self, loss: float) -> None:
        """Write down the loss of guessing, if the first loss is that of even probabilities."""
        n, self._n_classes = self._n_classes, 1
        entropy = math.log(n)
        if abs(loss - entropy) < _NEAR * entropy:
            self._record(self._begun | {"start_loss": entropy, "chance": 1 / n})

    def _snapshot(self) -> None:
        """Look inside; what goes wrong is noted, and there are no further looks."""
        if self._is_over or self._is_blind:
            return
        try:
            look, said = self._look(), self._said()
            self._keep(look, said)
        except Exception as error:  # of the caller's model, which goes on to train
            self._is_blind = True
            self._note = N_(
                "No maps from step {step:,} on: {name}: {message}",
                step=self._step,
                name=type(error).__name__,
                message=_first_line(error),
            )
            warnings.warn(str(self._note), RuntimeWarning, stacklevel=3)
            self._recorder.note(self._note)

    def _keep(self, look: Look, said: list[str] | None) -> None:
        words = {} if said is None else {"texts": said, "tokens": [one.split() for one in said]}
        stacks, experiment = self._plan.stacks(look), self.run.experiment
        snapshot = stacks.snapshot(experiment, self._step, self._n_attended, **words)
        folder = self.run.folder
        try:
            snapshots.write_snapshot(folder, snapshot)
        except OSError as error:
            self._give_up(error)
            return
        self._record({"event": "snapshot", "step": self._step})
        self._taken = self._step
        self._n_snapshots += 1
        if self._n_snapshots % MAX_SNAPSHOTS == 0:
            self._every *= 2

    def _look(self) -> Look:
        inputs, named = self._given.on(next(iter(self._model.parameters()), None))
        return forward(
            self._model,
            inputs,
            named,
            tokens=(),
            layers=(),
            crop=None,
            most_bytes=2**30,
        )

    def _said(self) -> list[str] | None:
        """Return the answer to each example, or None. Raises StudentError for what is no answer."""
        if self._answers is None:
            return None
        modes = {module: module.training for module in self._model.modules()}
        try:
            self._model.eval()
            with torch.no_grad():
                said = self._answers(self._model)
        finally:
            for module, is_training in modes.items():
                module.training = is_training
        if not isinstance(said, list | tuple) or not all(isinstance(one, str) for one in said):
            raise StudentError("answers must return a list of texts, one per example.")
        if len(said) < self._n_items:
            raise StudentError(
                "answers returned {n} texts for {examples} examples.",
                n=len(said),
                examples=self._n_items,
            )
        return [str(one) for one in said[: self._n_items]]


def _n_classes(model: nn.Module, look: Look) -> int:
    """Return among how many a model chooses, if its last layer makes logits; else 1."""
    modules = dict(model.named_modules())
    run = [modules[name] for name in look.shapes if name in modules]
    last = next((one for one in reversed(run) if not list(one.children())), model)
    logits = getattr(look.output, "logits", look.output)
    n = int(getattr(last, "out_features", 1))
    return n if isinstance(logits, Tensor) and logits.ndim and logits.shape[-1] == n else 1


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or N_("no message")).splitlines()[0]


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise StudentError(
            "{name} is {value}; give a whole number from 1.", name=name, value=str(value)
        )


def _checked(name: str, value: Any) -> Any:
    """Return a value to be written down later. Raises StudentError for what is no number."""
    if not isinstance(value, Tensor):
        return _number(name, value)
    if value.numel() != 1:
        raise StudentError(
            "{name} has {n} elements; give one number, such as {name}.mean().",
            name=name,
            n=value.numel(),
        )
    return value.detach()


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        raise StudentError(
            "{name} is {kind}, not a number.", name=name, kind=type(value).__name__
        ) from None
    if name == "accuracy" and math.isfinite(number) and not 0 <= number <= 1:
        raise StudentError("accuracy is {value:g}; give a share from 0 to 1.", value=number)
    return number
