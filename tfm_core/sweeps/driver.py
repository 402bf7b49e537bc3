"""The driver: asks Optuna for suggestions, queues their runs, and reports the results.

All state is on the disk, so a server can be killed at any moment and another continues. A server
holds a sweep's lock only during one look. The steps of a trial:

    1. its settings and the id of its run are noted     killed before 3: the run is made, or found
    2. its run is made and queued                       an ordinary run, which needs no server
    3. that is noted                                    a missing run was deleted by somebody
    4. its end is noted: complete, diverged or failed

A run that stops with its sweep gets an ordinary stop request. That is noted before, to distinguish
it from a run that a person stopped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Mapping, Sequence

from tfm_core.choices.config import ConfigError, Experiment
from tfm_core.lessons import attempts
from tfm_core.runs.disk.failures import refusal
from tfm_core.runs.disk.locks import RunLock, RunLocked
from tfm_core.runs.labels import MAX_NAME
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.queue.limits import LimitReached, TooLarge, check_memory
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status, write_status
from tfm_core.runs.store import RunNotFound, new_id
from tfm_core.sentences import N_, StudentError
from tfm_core.sweeps import space
from tfm_core.sweeps.plan import Plan, SweepDamaged, objective_value
from tfm_core.sweeps.store import Sweep, SweepStore, Trial, Trials, TrialState
from tfm_core.training.progress import is_of_divergence

LOOK_SECONDS = 1.0
"""How often to look at the active sweeps."""

MAX_IDLE = 30
"""After so many suggestions in a row without a run, a sweep ends."""

MAX_RESUMES = 3
"""How often a run that was interrupted is taken up again: what kills it may be the run itself."""

SURE_SECONDS = 3.0
"""How long a run must read as interrupted: one that just ends reads so for a moment."""

RETRY_SECONDS = 5.0
"""How long to wait before retrying a sweep that failed: a full disk or queue."""

_UNEXPECTED = N_("This sweep has an error (see the server log).")

logger = logging.getLogger(__name__)


class Driver:
    """Drives the sweeps of a queue's folder, from its own thread."""

    def __init__(self, queue: RunQueue) -> None:
        """Prepare; ``start`` begins."""
        self.queue, self.store = queue, queue.store
        self.sweeps = SweepStore(queue.store.root)
        self._interrupted: dict[str, float] = {}
        self._errors: dict[str, tuple[str, float]] = {}
        self._wake, self._closed = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, with the sweeps that an earlier server left. Call it once."""
        self._thread = threading.Thread(target=self._work, name="sweeps", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look at once: a sweep was begun or changed."""
        self._errors.clear()
        self._wake.set()

    def close(self) -> None:
        """End the thread; training runs continue."""
        self._closed.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def error_of(self, sweep_id: str) -> str | None:
        """Return why a sweep cannot continue now, in a sentence, or None."""
        found = self._errors.get(sweep_id)
        return None if found is None else found[0]

    def _work(self) -> None:
        while not self._closed.is_set():
            self._wake.clear()
            try:
                self.step()
            except Exception:  # the next look may succeed
                logger.exception("The sweeps could not be looked at.")
            self._wake.wait(LOOK_SECONDS)

    def step(self) -> None:
        """Advance every active sweep by one iteration."""
        for sweep in self.sweeps.list():
            if self._closed.is_set():
                return
            error = self._errors.get(sweep.id)
            if error is not None and time.monotonic() < error[1]:
                continue
            with contextlib.suppress(SweepDamaged):  # the page says it
                if sweep.plan().state in ("active", "stopping"):
                    self._drive(sweep)

    def _drive(self, sweep: Sweep) -> None:
        """Advance a sweep, unless another server does; note what prevents it."""
        try:
            with sweep.locked(patience=0.0):
                self._advance_sweep(sweep)
        except BlockingIOError:
            return
        except (StudentError, OSError) as error:
            sentence = refusal(error) if isinstance(error, OSError) else error.sentence
            if self.error_of(sweep.id) != sentence:
                logger.warning("The sweep %s cannot go on: %s", sweep.id, error)
            self._back_off(sweep, sentence)
        except Exception:  # the other sweeps continue, and this one may at the next look
            if self.error_of(sweep.id) != _UNEXPECTED:
                logger.exception("The sweep %s cannot go on.", sweep.id)
            self._back_off(sweep, _UNEXPECTED)
        else:
            self._errors.pop(sweep.id, None)

    def _back_off(self, sweep: Sweep, why: str) -> None:
        """Do not try a sweep again for a while. why: the reason, in a sentence."""
        self._errors[sweep.id] = (why, time.monotonic() + RETRY_SECONDS)

    def _advance_sweep(self, sweep: Sweep) -> None:
        trials = Trials(sweep, sweep.plan())  # read again under the lock
        for trial in list(trials.all):
            if trial.state == "running":
                self._advance_trial(trials, trial)
        if trials.plan.state == "active":
            self._suggest(trials)
        elif not any(self._trains(trial) for trial in trials.all):
            self._settle(trials)

    def _advance_trial(self, trials: Trials, trial: Trial) -> None:
        """Take an unfinished trial one step further."""
        assert trial.run_id is not None
        if not trial.begun:
            if trials.plan.state == "active":
                self._begin(trials, trial)
            elif self._trains(trial):  # killed before it was noted
                trials.change(trial, begun=True)
            return
        try:
            run = self.store.get(trial.run_id)
        except RunNotFound:
            trials.change(trial, state="failed", why=N_("The run was deleted."))
            return
        if run.problem is not None:
            trials.change(trial, state="failed", why=run.problem)
            return
        self._advance_run(trials, trial, run)

    def _advance_run(self, trials: Trials, trial: Trial, run: Run) -> None:
        status = run.status
        if status.state != "interrupted":
            self._interrupted.pop(run.id, None)
        if status.is_active:
            if trials.plan.state == "stopping":
                if not trial.held:
                    trials.change(trial, held=True)
                with contextlib.suppress(StudentError):  # it has just ended
                    if not any((run.folder / "requests").glob("*-stop")):
                        run.request("stop")
        elif status.state == "finished":
            value = objective_value(trials.plan.looks_for, run.curves(), run.experiment)
            if value is None:
                missing = N_("The run did not measure this metric.")
                trials.change(trial, state="failed", why=missing)
            else:
                trials.change(trial, state="complete", value=value)
        elif status.state == "failed":
            reason = status.reason or N_("The run failed.")
            ended: TrialState = "diverged" if is_of_divergence(reason) else "failed"
            trials.change(trial, state=ended, why=reason)
        elif status.state == "interrupted" or trial.held:
            self._resume(trials, trial, run, status)
        else:
            why = status.reason or N_("The run was stopped.")
            trials.change(trial, state="failed", why=why)

    def _resume(self, trials: Trials, trial: Trial, run: Run, status: Status) -> None:
        """Resume a run that was stopped with its sweep, or whose worker was killed."""
        if trials.plan.state != "active":
            return
        if status.state == "interrupted" and not trial.held:
            since = self._interrupted.setdefault(run.id, time.monotonic())
            if time.monotonic() - since < SURE_SECONDS:
                return
            if trial.resumed >= MAX_RESUMES:
                why = status.reason or N_("The run was interrupted.")
                trials.change(trial, state="failed", why=why)
                return
            trials.change(trial, resumed=trial.resumed + 1)
        self._interrupted.pop(run.id, None)
        self.queue.resume(run)
        if trial.held:
            trials.change(trial, held=False)

    def _suggest(self, trials: Trials) -> None:
        """Ask for trials, up to as many as may train at once, and within the budget."""
        for _attempt in range(MAX_IDLE):
            plan, every = trials.plan, trials.all
            n_open = sum(trial.state == "running" for trial in every)
            ended, values = self._over(plan, every), None
            if ended is None and n_open < plan.at_once:
                values = trials.suggestion()
                ended = N_("Every grid point was tried.") if values is None else None
            if values is not None:
                self._check_place(plan)
                self._add(trials, values)
            elif ended is None or n_open:
                return
            else:
                trials.sweep.write(dataclasses.replace(plan, state="finished", reason=str(ended)))
                return

    def _over(self, plan: Plan, trials: Sequence[Trial]) -> str | None:
        """Return why there shall be no further trial, in a sentence, or None."""
        if sum(trial.run_id is not None for trial in trials) >= plan.most_runs:
            return N_("The budget of {n:,} runs is used up.", n=plan.most_runs)
        if plan.max_minutes is not None and self.seconds(trials) >= 60 * plan.max_minutes:
            return N_("The budget of {n:g} minutes is used up.", n=plan.max_minutes)
        if len(trials) >= MAX_IDLE and all(trial.run_id is None for trial in trials[-MAX_IDLE:]):
            return N_("The last {n} suggestions were repeated or invalid.", n=MAX_IDLE)
        return None

    def seconds(self, trials: Sequence[Trial]) -> float:
        """Return how long the runs of trials have trained, all together."""
        total = 0.0
        for trial in trials:
            if trial.has_run and trial.run_id is not None:
                with contextlib.suppress(RunNotFound):
                    status = self.store.get(trial.run_id).status
                    total += status.seconds - status.parent_seconds
        return total

    def _check_place(self, plan: Plan) -> None:
        """Raise LimitReached, in a sentence, where no run may be queued just now."""
        limits = self.queue.limits
        if len(waiting_line.ids(self.store.root)) >= max(1, limits.max_queued):
            limits.check(plan.base, n_queued=limits.max_queued)
        limits.check_session(0 if plan.owner is None else self.store.n_active(plan.owner))

    def _add(self, trials: Trials, values: dict[str, space.Value]) -> None:
        """Note a suggestion and queue its run; invalid and repeated ones end without one."""
        experiment, why = self._experiment(trials.plan, values)
        if experiment is None:
            trials.add(values, state="failed", why=why)
            return
        for other in trials.all:  # the same experiment gives the same curve
            if other.run_id is None or other.state == "failed":
                continue
            with contextlib.suppress(ConfigError):
                if space.with_values(trials.plan.base, other.values) != experiment:
                    continue
                if other.state == "complete":
                    why = N_("Same as trial {n}, whose value is used.", n=other.number)
                    trials.add(values, state="complete", value=other.value, why=why)
                else:
                    why = N_("Same as trial {n}.", n=other.number)
                    trials.add(values, state="failed", why=why)
                return
        self._begin(trials, trials.add(values, run_id=new_id()))

    def _begin(self, trials: Trials, trial: Trial) -> None:
        """Queue a trial's run."""
        experiment, why = self._experiment(trials.plan, trial.values)
        if experiment is None:
            trials.change(trial, state="failed", why=why)
            return
        self._queue(trials.plan, trial, experiment)
        trials.change(trial, begun=True)

    def _experiment(
        self, plan: Plan, values: Mapping[str, space.Value]
    ) -> tuple[Experiment | None, str]:
        """Return the experiment of some settings; None and the reason if it cannot be trained."""
        try:
            experiment = space.with_values(plan.base, values)
            self.queue.limits.check(experiment, n_queued=0)
            check_memory(experiment, plan.device)
        except (ConfigError, LimitReached, TooLarge) as error:
            return None, error.sentence
        return experiment, ""

    def _queue(self, plan: Plan, trial: Trial, experiment: Experiment) -> None:
        """Queue a new run, or the one that a killed server made. Raises ValueError."""
        with self.queue.one_at_a_time():
            try:
                run = self.store.get(trial.run_id or "")
            except RunNotFound:
                self._check_place(plan)
                name = f"{plan.name} {trial.number}: {space.words(plan.base, trial.values)}"
                run = self.store.create(
                    experiment,
                    device=plan.device,
                    threads=plan.threads,
                    name=name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…",
                    owner=plan.owner,
                    owner_name=plan.owner_name,
                    group=plan.name,
                    run_id=trial.run_id,
                    lesson=plan.lesson,
                )
                self._note_in_lesson(plan, run)
            if run.status.state != "queued":
                return
            try:
                self.queue.submit(run)
            except ValueError:
                self.store.discard(run)
                raise

    def _note_in_lesson(self, plan: Plan, run: Run) -> None:
        """Count a new run among its participant's; one that cannot be noted trains all the same."""
        if plan.lesson is None or plan.owner is None:
            return
        try:
            attempts.change(
                plan.lesson, plan.owner, lambda old: old.with_run(run.id), root=self.store.root
            )
        except StudentError as error:
            logger.warning("Run %s is not noted in its lesson: %s", run.id, error)

    def _trains(self, trial: Trial) -> bool:
        """Return whether the run of a trial that is not over still trains or waits."""
        if trial.state != "running" or trial.run_id is None:
            return False
        try:
            return self.store.get(trial.run_id).status.is_active
        except RunNotFound:
            return False

    def _settle(self, trials: Trials) -> None:
        """End a stop: none of the runs trains any more."""
        for trial in trials.all:
            if trial.state == "running" and trial.held and trial.run_id is not None:
                with contextlib.suppress(RunNotFound):
                    run = self.store.get(trial.run_id)
                    _explain(run, N_("Stopped with its sweep, and resumes with it."))
        trials.sweep.write(dataclasses.replace(trials.plan, state="stopped"))


def stop(plan: Plan) -> Plan:
    """Return the plan of a sweep that shall stop, with the runs that train now."""
    return dataclasses.replace(plan, state="stopping", reason=None)


def go_on(plan: Plan) -> Plan:
    """Return the plan of a sweep to be resumed."""
    return dataclasses.replace(plan, state="active", reason=None)


def _explain(run: Run, why: str) -> None:
    """Let a run that was asked to stop say why."""
    with contextlib.suppress(RunLocked, OSError), RunLock(run.folder):
        status = run.status
        if status.state == "stopped" and status.reason != why:
            write_status(run.folder, dataclasses.replace(status, reason=why, queue_position=None))
