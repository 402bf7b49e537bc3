"""Train a run: from the engine's events to the run's folder.

Workers and the command line both train here, so every run has the same folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfm_core import settings
from tfm_core.choices.config.experiment import Turn, checked, possible
from tfm_core.data.user_data import sets
from tfm_core.disk import remove
from tfm_core.facts import storage
from tfm_core.reading import Unreadable, is_number, object_of
from tfm_core.runs import own_sets, snapshots, thinned
from tfm_core.runs.curves import turns_in
from tfm_core.runs.disk import trash
from tfm_core.runs.disk.atomic import write_json
from tfm_core.runs.disk.failures import sentence
from tfm_core.runs.disk.locks import RunLock, RunLocked
from tfm_core.runs.process import requests
from tfm_core.runs.process.identity import is_same, process_id
from tfm_core.runs.process.recorder import Recorder, keeps
from tfm_core.runs.process.requests import BY_HAND, Control
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, Status, write_status
from tfm_core.sentences import N_, StudentError, joined
from tfm_core.training.events import (
    Compiled,
    Event,
    Finished,
    Measured,
    SnapshotDue,
    Step,
    to_record,
)

if TYPE_CHECKING:
    from tfm_core.training.loop import Trainer

CHECKPOINT_SECONDS = 10.0
"""Wall-clock seconds between two checkpoints, at least."""

CHECKPOINT_SHARE = 20
"""A checkpoint is saved after at least so many times the time that one takes."""

Listener = Callable[[Event], None]
Ending = tuple[State, str | None]
"""How a stretch of training ended, and why."""


class NotWaiting(StudentError):
    """A worker came to a run that does not wait for one."""


def execute(
    run: Run,
    control: Control | None = None,
    listener: Listener | None = None,
    *,
    only_waiting: bool = False,
) -> Status:
    """Train a run from its last checkpoint, or from the start, and return how it ended.

    ``listener`` is called with every event. only_waiting: leave a run alone that does not wait.
    Raises RunLocked if another process works on the run, NotWaiting if it does not wait though
    it must, and OSError if not even the status can be written; everything else becomes a status.
    """
    control = control or Control(run.folder)
    try:
        return _executed(run, control, listener, only_waiting)
    except OSError as error:  # it could not even start
        _log(run, error)
        ended = dataclasses.replace(run.status, state="failed", reason=_why(run, error))
        if ended.pid not in {None, process_id().pid} and run.status.is_alive:
            raise  # another process has it by now
        write_status(run.folder, ended)
        return ended


def _executed(run: Run, control: Control, listener: Listener | None, only_waiting: bool) -> Status:
    with RunLock(run.folder) as lock:
        if only_waiting and not waiting_line.waits(run.folder):
            raise NotWaiting("The run {id} isn't waiting to be trained.", id=run.id)
        trash.clean_run(run.folder)
        status = run.status
        mark = process_id()
        if status.mark is None or not is_same(status.mark, mark):
            # else the queue has prepared everything for this process
            requests.take(run.folder)  # requests to an earlier worker
        with Recorder(lock, status.with_process(mark)) as recorder:
            control.begin(status.seconds - status.parent_seconds, recorder.clock)
            recorder.change("starting")
            waiting_line.leave(run.folder.parent, run.id)
            state, reason = _trained(run, control, recorder, listener)
            recorder.stop_heartbeat()
            lock.release()  # before the last status: a reader may resume the run at once
            recorder.change(state, reason)
            return recorder.status


def set_up_torch(threads: int) -> None:
    """Set what affects speed and the last bits of results: threads, and no denormals.

    On NVIDIA GPUs products of fp32 matrices take TF32: the range of fp32 and 10 bits of precision.
    """
    import torch

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    torch.backends.cuda.matmul.allow_tf32 = True


class _Execution:
    """One stretch of training, from start or resume to its end."""

    def __init__(
        self,
        run: Run,
        control: Control,
        recorder: Recorder,
        listener: Listener | None,
    ) -> None:
        self.run, self.control, self.recorder, self.listener = run, control, recorder, listener
        self.total = run.experiment.trained.steps
        self.last, self.best, self.before_turn = (
            run.folder / "checkpoints" / name for name in ("last", "best", "turn")
        )
        self._best_loss = _best_loss(run.folder)
        self._last_step: Step | None = None
        self._weights = "average" if run.experiment.trained.ema_decay else "last"
        self._saved_at, self._save_took, self._saved_step = time.monotonic(), 0.0, -1
        self.limits = settings.read().limits
        most = self.limits.max_attention
        self.n_attended = max(1, storage.examples_kept(run.experiment, most))
        self._cpu_before: float | None = 0.0
        """CPU-seconds of earlier stretches; None if one did not record them."""
        self._cpu_begin = 0.0

    def train(self) -> Ending:
        """Build, load, train, and finish or stop; return how it ended."""
        from tfm_core.training.loop import build, train

        set_up_torch(self.run.meta.threads)
        own_sets.keep_vocabulary(self.run)
        trainer = build(self.run.experiment, self.run.meta.device, self._download)
        trainer.clock = self.recorder.clock
        trainer.turns = possible(self.run.experiment, turns_in(self.run.folder / "events.jsonl"))
        reason = self._continue(trainer)
        self._choose_examples(trainer)
        self._report_progress(trainer)
        self.recorder.change("running", reason, device=str(trainer.device), total_steps=self.total)
        why = None
        self._cpu_begin = time.process_time()
        for event in train(trainer):
            if isinstance(event, Finished):
                why = event.reason
            if not self._take(event, trainer):
                self._record_last_step(trainer)
                self._save(trainer)
                return "stopped", self.control.stop_reason
        self._save(trainer)
        return "finished", why

    def _continue(self, trainer: Trainer) -> str | None:
        """Load the last checkpoint, if any; return a sentence for the status, or None."""
        from tfm_core.training import checkpoints

        if self.run.has_checkpoint:
            checkpoints.load(trainer, self.last)
            self._saved_step = trainer.step
            if trainer.patience.limit and (self.best / checkpoints.FILE).is_file():
                checkpoints.load_best(trainer, self.best)
        elif not self.recorder.has_events:
            return None
        step = trainer.step if self.run.has_checkpoint else -1
        self.recorder.record({"event": "resumed", "step": step})
        taken = [snapshots.snapshot_path(self.run.folder, n) for n in self.run.snapshot_steps()]
        taken += [snapshots.weights_path(self.run.folder, n) for n in self.run.weight_steps()]
        for path in taken:
            if int(path.stem) > step:
                remove(path)
        if step >= 0:
            self._cpu_before = self.run.thinned_curves().steps.last("cpu_seconds") if step else 0.0
            return None
        self._best_loss = math.inf
        return N_("It started again because there was no checkpoint.")

    def _take(self, event: Event, trainer: Trainer) -> bool:
        """Record an event and answer requests; False means that the run shall stop."""
        self._record(event, trainer)
        if self.listener is not None:
            self.listener(event)
        if isinstance(event, Measured):
            self._keep_best(event, trainer)
        if not isinstance(event, Step):
            return True
        go_on = self.control.after_step(
            pause=lambda: self._pause(trainer),
            go_on=lambda: self.recorder.change("running"),
            snapshot=lambda: self._snapshot(trainer),
            turn=partial(self._turn, trainer),
        )
        wait = max(CHECKPOINT_SECONDS, CHECKPOINT_SHARE * self._save_took)
        if go_on and time.monotonic() - self._saved_at >= wait:
            self._save(trainer)
        return go_on

    def _record(self, event: Event, trainer: Trainer) -> None:
        if isinstance(event, Step):
            self._last_step = event
            is_kept = keeps(event.step, self.total) or bool(event.gradients)
            if is_kept or self.control.is_stepping:
                self._record_last_step(trainer)
            self._report_progress(trainer)
        else:
            if isinstance(event, SnapshotDue):
                self._snapshot(trainer)
                if event.keeps_weights:
                    self._keep_weights(trainer)
            self.recorder.record(to_record(event))
            if isinstance(event, Compiled):
                self._cpu_begin = time.process_time()  # compiling is not training time

    def _record_last_step(self, trainer: Trainer) -> None:
        """Record the newest step, unless it is recorded already."""
        if self._last_step is not None:
            self.recorder.record(to_record(self._last_step) | self._times(trainer))
            self._last_step = None

    def _times(self, trainer: Trainer) -> dict[str, float]:
        """Return how long the run has trained: seconds without pauses, and CPU-seconds."""
        times = {"seconds": round(trainer.seconds, 3)}
        if self._cpu_before is not None:
            cpu = self._cpu_before + time.process_time() - self._cpu_begin
            times["cpu_seconds"] = round(cpu, 3)
        return times

    def _turn(self, trainer: Trainer, setting: str, value: float) -> None:
        """Change a setting from the next step on, and keep a checkpoint of before.

        An invalid value changes nothing.
        """
        from tfm_core.training import checkpoints

        with contextlib.suppress(StudentError):
            turn = checked(self.run.experiment, Turn(trainer.step + 1, setting, value))
            self.recorder.sync()
            checkpoints.save(trainer, self.before_turn)
            trainer.turns = possible(self.run.experiment, (*trainer.turns, turn))

    def _pause(self, trainer: Trainer) -> None:
        self._record_last_step(trainer)
        self._save(trainer)
        self.recorder.change("paused")

    def _report_progress(self, trainer: Trainer) -> None:
        self.recorder.progress(step=trainer.step, epoch=trainer.epoch, seconds=trainer.seconds)

    def _snapshot(self, trainer: Trainer) -> None:
        from tfm_core.probe import snapshot

        taken = snapshot.take(trainer, self.n_attended)
        snapshots.write_snapshot(self.run.folder, taken)

    def _keep_weights(self, trainer: Trainer) -> None:
        from tfm_core.pretrained.lora import merged_state

        if storage.weights_bytes(trainer.n_parameters, self.limits.max_weights):
            state = {name: value.cpu() for name, value in merged_state(trainer.eval_model).items()}
            arrays = {
                name: (value.half() if value.is_floating_point() else value).numpy()
                for name, value in state.items()
            }
            snapshots.write_weights(self.run.folder, trainer.step, arrays)

    def _choose_examples(self, trainer: Trainer) -> None:
        """Write the probe; a resumed run records the attention of no more examples than before."""
        from tfm_core.probe import snapshot

        if trainer.step > 0:
            n_before = len(self.run.probe().attended)
            self.n_attended = min(self.n_attended, n_before)
            if self.n_attended == n_before:
                return
        probe = snapshot.probe_of(trainer)
        if self.n_attended < len(probe["items"]):
            probe["n_attended"] = self.n_attended
        snapshots.write_probe(self.run.folder, probe)

    def _keep_best(self, measured: Measured, trainer: Trainer) -> None:
        from tfm_core.training import checkpoints

        counts = (measured.split, measured.weights) == ("validation", self._weights)
        if counts and measured.step > 0 and measured.loss < self._best_loss:
            self._best_loss = measured.loss
            checkpoints.save(trainer, self.best)
            best = {"loss": measured.loss, "step": trainer.step}
            write_json(self.run.folder / "best.json", best, lasting=True)

    def _save(self, trainer: Trainer) -> None:
        from tfm_core.training import checkpoints

        begin = time.monotonic()
        self.recorder.sync()  # the curve must be on the disk before its checkpoint
        if trainer.step != self._saved_step:
            checkpoints.save(trainer, self.last)
            self._save_took = time.monotonic() - begin
            self._saved_step = trainer.step
        thinned.keep(self.run.folder)
        self._saved_at = time.monotonic()

    def _download(self, done: int, total: int, words: str) -> None:
        share = f", {done / total:.0%}" if total else ""
        self.recorder.note(f"{words}{share}")
        if self.control.is_stop_asked():
            raise KeyboardInterrupt


def _trained(run: Run, control: Control, recorder: Recorder, listener: Listener | None) -> Ending:
    """Train, and return how it ended, whatever happens on the way."""
    try:
        with sets.below(run.folder.parent):
            return _Execution(run, control, recorder, listener).train()
    except RunLocked:
        raise
    except KeyboardInterrupt:
        return "stopped", control.stop_reason or BY_HAND
    except Exception as error:
        _log(run, error)
        return "failed", _why(run, error)


def _why(run: Run, error: Exception) -> str:
    if run.problem is not None:
        return run.problem
    why = sentence(error, run.experiment, run.meta.device)
    if isinstance(error, OSError):
        return joined(why, N_("Then resume the run."))
    return why


def _log(run: Run, error: Exception) -> None:
    try:
        with (run.folder / "worker.log").open("a", encoding="utf-8") as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError:  # a full disk: the status may still be written
        return


def _best_loss(folder: Path) -> float:
    """Return the lowest validation loss so far, or infinity."""
    try:
        loss = object_of(folder / "best.json", most=65_536).get("loss")
    except (FileNotFoundError, Unreadable):
        return math.inf
    return float(loss) if is_number(loss, -1e30, 1e30) else math.inf
