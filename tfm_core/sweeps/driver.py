"""The driver: asks Optuna for suggestions, queues their runs, and reports the results.

All state is on the disk, so a server can be killed at any moment and another continues. A server
holds a sweep's lock only during one look. The steps of a trial:

    1. Optuna suggests it             killed before all settings are there: it failed, without a run
    2. the id of its run is noted     killed here or before 4: the run is made, or found, and queued
    3. its run is made and queued     an ordinary run, which no longer needs a server
    4. that is noted                  from now on a missing run was deleted by somebody
    5. its values are reported        at each rung, for the pruner
    6. its end is reported            complete, pruned or failed; invalid ones fail after step 1

A run that is pruned, or stops with its sweep, gets an ordinary stop request. The reason is noted
before, to distinguish it from a run that a person stopped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tfm_core.config import ConfigError, Experiment
from tfm_core.lessons import attempts
from tfm_core.runs.curves import Curves
from tfm_core.runs.disk.failures import refusal
from tfm_core.runs.queue import claim, resources, tickets
from tfm_core.runs.queue.limits import LimitReached
from tfm_core.runs.queue.resources import TooLarge
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.record.labels import MAX_NAME
from tfm_core.runs.record.thinned import ThinnedReader
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status, write_status
from tfm_core.runs.store import RunNotFound, new_id
from tfm_core.sentences import N_, StudentError
from tfm_core.sweeps import objectives, space
from tfm_core.sweeps.plan import Plan, SweepDamaged
from tfm_core.sweeps.store import Sweep, SweepStore
from tfm_core.sweeps.study import Study, Trial
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
        self._open: dict[str, Study] = {}
        self._readers: dict[str, ThinnedReader] = {}
        self._interrupted: dict[str, float] = {}
        self._troubles: dict[str, tuple[str, float]] = {}
        self._wake, self._closed = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, with the sweeps that an earlier server left. Call it once."""
        self._thread = threading.Thread(target=self._work, name="sweeps", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Look at once: a sweep was begun or changed."""
        self._troubles.clear()
        self._wake.set()

    def close(self) -> None:
        """End the thread; training runs continue."""
        self._closed.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def trouble(self, sweep_id: str) -> str | None:
        """Return why a sweep cannot continue now, in a sentence, or None."""
        found = self._troubles.get(sweep_id)
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
            trouble = self._troubles.get(sweep.id)
            if trouble is not None and time.monotonic() < trouble[1]:
                continue
            with contextlib.suppress(SweepDamaged):  # the page says it
                if sweep.plan().state in ("active", "stopping"):
                    self._drive(sweep)
                else:
                    self._open.pop(sweep.id, None)

    def _drive(self, sweep: Sweep) -> None:
        """Advance a sweep, unless another server does; note what prevents it."""
        try:
            with sweep.locked(patience=0.0):
                self._advance_sweep(sweep)
        except BlockingIOError:
            return
        except (StudentError, OSError) as error:
            sentence = refusal(error) if isinstance(error, OSError) else error.sentence
            if self.trouble(sweep.id) != sentence:
                logger.warning("The sweep %s cannot go on: %s", sweep.id, error)
            self._back_off(sweep, sentence)
        except Exception:  # the other sweeps continue, and this one may at the next look
            if self.trouble(sweep.id) != _UNEXPECTED:
                logger.exception("The sweep %s cannot go on.", sweep.id)
            self._back_off(sweep, _UNEXPECTED)
        else:
            self._troubles.pop(sweep.id, None)

    def _back_off(self, sweep: Sweep, why: str) -> None:
        """Do not try a sweep again for a while. why: the reason, in a sentence."""
        self._open.pop(sweep.id, None)
        self._troubles[sweep.id] = (why, time.monotonic() + RETRY_SECONDS)

    def _advance_sweep(self, sweep: Sweep) -> None:
        plan = sweep.plan()  # read again under the lock
        study = self._study_of(sweep, plan)
        for trial in study.trials():
            if trial.state == "running":
                self._advance_trial(study, trial)
        if plan.state == "active":
            study.carry()
            self._suggest(study)
        trials = study.trials()
        if plan.state == "stopping" and not any(self._trains(trial) for trial in trials):
            self._settle(study, trials)

    def _study_of(self, sweep: Sweep, plan: Plan) -> Study:
        known = self._open.get(sweep.id)
        if known is None or not sweep.journal.exists():
            known = self._open[sweep.id] = Study(sweep, plan, writes=True)
        else:
            known.follow(plan)
        return known

    def _advance_trial(self, study: Study, trial: Trial) -> None:
        """Take an unfinished trial one step further."""
        if not trial.has_run:
            if study.plan.state == "active":
                self._begin(study, trial)
            elif trial.run_id is not None and self._trains(trial):  # killed before it was noted
                study.note(trial, "begun", True)
            return
        assert trial.run_id is not None
        try:
            run = self.store.get(trial.run_id)
        except RunNotFound:
            study.tell(trial, "failed", None, N_("Its run was deleted."))
            return
        if run.problem is not None:
            study.tell(trial, "failed", None, run.problem)
            return
        self._advance_run(study, trial, run)

    def _advance_run(self, study: Study, trial: Trial, run: Run) -> None:
        status = run.status
        if status.state != "interrupted":
            self._interrupted.pop(run.id, None)
        if status.is_active:
            self._monitor(study, trial, run, status)
        elif status.state == "finished":
            self._finished(study, trial, run)
        elif trial.pruning:
            self._report(study, trial, run)
            _explain(run, trial.pruning)
            study.tell(trial, "pruned", None, trial.pruning)
        elif status.state == "failed":
            self._failed(study, trial, run, status)
        elif status.state == "interrupted" or trial.held:
            self._resume(study, trial, run, status)
        else:
            study.tell(trial, "failed", None, status.reason or N_("Its run was stopped."))

    def _monitor(self, study: Study, trial: Trial, run: Run, status: Status) -> None:
        """Report what a training run measured, and stop it if its sweep stops or it is pruned."""
        plan = study.plan
        if plan.state == "stopping":
            if not trial.held:
                study.note(trial, "held", True)
            _stop(run)
            return
        if trial.pruning:
            _stop(run)
            return
        if not self._report(study, trial, run) or plan.pruning == "none":
            return
        if study.is_hopeless(trial):
            why = N_("Pruned at step {step:,}: other runs were better.", step=status.step)
            study.note(trial, "pruning", str(why))
            _stop(run)

    def _report(self, study: Study, trial: Trial, run: Run) -> bool:
        """Report the rungs that are over; return whether there was a new one."""
        curves = self._curves(run)
        steps = run.experiment.training.steps
        reports = objectives.reports(study.plan.looks_for, curves, steps)
        is_new = any(rung not in trial.reports for rung in reports)
        study.report(trial, reports)
        return is_new

    def _finished(self, study: Study, trial: Trial, run: Run) -> None:
        self._report(study, trial, run)
        value = objectives.value(study.plan.looks_for, self._curves(run), run.experiment)
        self._readers.pop(run.id, None)
        if value is None:
            study.tell(trial, "failed", None, N_("Its run did not measure this metric."))
        else:
            study.tell(trial, "complete", value)

    def _failed(self, study: Study, trial: Trial, run: Run, status: Status) -> None:
        """A training that diverged counts as a bad one; another failure says nothing of it."""
        reason = status.reason or N_("Its run failed.")
        if is_of_divergence(reason):
            self._report(study, trial, run)
            study.tell(trial, "pruned", None, reason)
        else:
            study.tell(trial, "failed", None, reason)

    def _resume(self, study: Study, trial: Trial, run: Run, status: Status) -> None:
        """Resume a run that was stopped with its sweep, or whose worker was killed."""
        if study.plan.state != "active":
            return
        if status.state == "interrupted" and not trial.held:
            since = self._interrupted.setdefault(run.id, time.monotonic())
            if time.monotonic() - since < SURE_SECONDS:
                return
            if trial.resumed >= MAX_RESUMES:
                study.tell(trial, "failed", None, status.reason or N_("Its run was interrupted."))
                return
            study.note(trial, "resumed", trial.resumed + 1)
        self._interrupted.pop(run.id, None)
        self.queue.resume(run)
        if trial.held:
            study.note(trial, "held", False)

    def _suggest(self, study: Study) -> None:
        """Ask for trials, up to as many as may train at once, and within the budget."""
        for _attempt in range(MAX_IDLE):
            plan, trials = study.plan, study.trials()
            ended = self._over(study, trials)
            n_open = sum(trial.state == "running" for trial in trials)
            if ended is not None:
                if not n_open:
                    self._end(study, ended)
                return
            if n_open >= plan.at_once:
                return
            self._check_place(plan)
            study.ask(_untried(study, trials) if plan.search == "grid" else None)
            newest = study.trials()[-1]
            if newest.state == "running":
                self._begin(study, newest)

    def _over(self, study: Study, trials: Sequence[Trial]) -> str | None:
        """Return why there shall be no further trial, in a sentence, or None."""
        plan = study.plan
        spent = [trial for trial in trials if trial.run_id is not None]
        if len(spent) >= plan.most_runs:
            return N_("Its budget of {n:,} runs is used up.", n=plan.most_runs)
        if plan.max_minutes is not None and self.seconds(trials) >= 60 * plan.max_minutes:
            return N_("Its budget of {n:g} minutes is used up.", n=plan.max_minutes)
        if plan.search == "grid" and _untried(study, trials) is None:
            return N_("Every grid point was tried.")
        idle = 0
        for trial in reversed(trials):
            if trial.run_id is not None or trial.state == "running":
                break
            idle += 1
        if idle >= MAX_IDLE:
            return N_("The last {n} suggestions were repeated or invalid.", n=idle)
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
        if len(tickets.waiting(self.store.root)) >= max(1, limits.max_queued):
            limits.check(plan.base, n_queued=limits.max_queued)
        limits.check_session(0 if plan.owner is None else self.store.n_active(plan.owner))

    def _begin(self, study: Study, trial: Trial) -> None:
        """Queue a trial's run; invalid and repeated trials end without one."""
        plan = study.plan
        if {one.path for one in plan.space} != set(trial.values) and trial.run_id is None:
            study.tell(trial, "failed", None, N_("Its server ended before it started."))
            return
        try:
            experiment = space.with_values(plan.base, trial.values)
            self.queue.limits.check(experiment, n_queued=0)
            resources.check(experiment, plan.device)
        except (ConfigError, LimitReached, TooLarge) as error:
            study.tell(trial, "failed", None, error.sentence)
            return
        if trial.run_id is None and self._was_tried(study, trial, experiment):
            return
        run_id = trial.run_id or new_id()
        if trial.run_id is None:
            study.note(trial, "run", run_id)
        self._queue(plan, trial, experiment, run_id)
        study.note(trial, "begun", True)

    def _was_tried(self, study: Study, trial: Trial, experiment: Experiment) -> bool:
        """Tell a trial what an equal one came to: the same experiment gives the same curve."""
        for other in study.trials():
            if other.number == trial.number or other.run_id is None or other.state == "failed":
                continue
            try:
                same = space.with_values(study.plan.base, other.values) == experiment
            except ConfigError:
                continue
            if same and other.state == "complete":
                why = N_("Same as trial {n}; its value is used.", n=other.number)
                study.tell(trial, "complete", other.value, why)
                return True
            if same:
                why = N_("Same as trial {n}.", n=other.number)
                study.tell(trial, "failed", None, why)
                return True
        return False

    def _queue(self, plan: Plan, trial: Trial, experiment: Experiment, run_id: str) -> None:
        """Queue a new run, or the one that a killed server made. Raises ValueError."""
        with self.queue.one_at_a_time():
            try:
                run = self.store.get(run_id)
            except RunNotFound:
                self._check_place(plan)
                words = space.words(plan.base, trial.values)
                run = self.store.create(
                    experiment,
                    device=plan.device,
                    threads=plan.threads,
                    name=_cut(f"{plan.name} {trial.number}: {words}"),
                    owner=plan.owner,
                    owner_name=plan.owner_name,
                    group=plan.name,
                    run_id=run_id,
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
            attempts.add_run(plan.lesson, plan.owner, run.id, root=self.store.root)
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

    def _settle(self, study: Study, trials: Sequence[Trial]) -> None:
        """End a stop: none of the runs trains any more."""
        for trial in trials:
            if trial.state == "running" and trial.held and trial.run_id is not None:
                with contextlib.suppress(RunNotFound):
                    run = self.store.get(trial.run_id)
                    _explain(run, N_("Stopped with its sweep; resumes with it."))
        study.sweep.write(dataclasses.replace(study.plan, state="stopped"))

    def _end(self, study: Study, reason: str) -> None:
        plan = dataclasses.replace(study.plan, state="finished", reason=str(reason))
        study.sweep.write(plan)
        study.follow(plan)

    def _curves(self, run: Run) -> Curves:
        return self._readers.setdefault(run.id, ThinnedReader(run.folder)).read()


def stop(plan: Plan) -> Plan:
    """Return the plan of a sweep that shall stop, with the runs that train now."""
    return dataclasses.replace(plan, state="stopping", reason=None)


def go_on(plan: Plan) -> Plan:
    """Return the plan of a sweep to be resumed."""
    return dataclasses.replace(plan, state="active", reason=None)


def _untried(study: Study, trials: Sequence[Trial]) -> dict[str, space.Value] | None:
    """Return the first grid point without a trial, or None."""
    plan = study.plan
    placed = (space.point_in(plan.base, plan.space, trial.values) for trial in trials)
    tried = {frozenset(values.items()) for values in placed if values is not None}
    points = space.grid(plan.space)
    return next((point for point in points if frozenset(point.items()) not in tried), None)


def _stop(run: Run) -> None:
    """Ask a run to stop, unless it was and has not answered yet."""
    asked = run.folder / "requests"
    if any(path.name.endswith("-stop") for path in _files(asked)):
        return
    with contextlib.suppress(StudentError):  # it has just ended
        run.request("stop")


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _explain(run: Run, why: str) -> None:
    """Let a run that was asked to stop say why."""
    with contextlib.suppress(claim.RunHeld, OSError), claim.moment(run.folder):
        status = run.status
        if status.state == "stopped" and status.reason != why:
            write_status(run.folder, dataclasses.replace(status, reason=why, queue_position=None))


def _cut(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
