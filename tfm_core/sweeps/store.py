"""The sweeps of a folder of runs: a folder each, below ``sweeps``, with its plan and its trials.

sweeps/<id>/sweep.json     the plan, changed by the app at any time
sweeps/<id>/trials.json    what was tried, and what it came to
sweeps/<id>/lock           locked by the process that changes either

A sweep is known by its plan and its trials alone: each suggestion comes from an Optuna study made
of the earlier trials, of any range, that lie in the plan's space.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tfm_core.disk import rename, sync_folder
from tfm_core.reading import Unreadable, object_of
from tfm_core.runs.disk import locks, trash
from tfm_core.runs.disk.atomic import write_bytes, write_json
from tfm_core.runs.disk.failures import os_errors_as_sentences
from tfm_core.runs.disk.locks import limit_lock
from tfm_core.runs.disk.trash import SWEEPS
from tfm_core.runs.run import ID
from tfm_core.runs.store import new_id
from tfm_core.sentences import StudentError
from tfm_core.stored import Stored, matching, number, text, whole
from tfm_core.sweeps import plan as plans
from tfm_core.sweeps import space
from tfm_core.sweeps.plan import Plan, SweepDamaged
from tfm_core.sweeps.space import Choices, Space, Value

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

FOLDER = SWEEPS
TRIALS = "trials.json"

MAX = 500
"""Sweeps that a folder of runs may hold; each is looked at every second while it is active."""

PATIENCE = 20.0
"""Seconds to wait for a sweep's lock: a server may be asking Optuna for a suggestion."""

_DRAFT = ".new-"


class SweepNotFound(StudentError):
    """There is no sweep with this id."""


class Sweep:
    """A folder of a sweep. Cheap to make; everything is read on demand."""

    def __init__(self, folder: Path) -> None:
        """Point at a folder, which need not be whole."""
        self.folder = folder

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def trials(self) -> Path:
        """The file of its trials, missing before the first."""
        return self.folder / TRIALS

    def plan(self) -> Plan:
        """Return the plan as it is now. Raises SweepDamaged, in a sentence."""
        return plans.read(self.folder)

    @contextlib.contextmanager
    def locked(self, patience: float = PATIENCE) -> Iterator[None]:
        """Keep others from changing the sweep. Raises BlockingIOError and OSError."""
        lock = locks.lock(self.folder / "lock", patience=patience)
        try:
            yield
        finally:
            locks.unlock(lock)

    @os_errors_as_sentences()
    def change(self, edit: Callable[[Plan], Plan]) -> Plan:
        """Change the plan under its lock. Raises ValueError, in a sentence; then nothing changes.

        Another space, budget or search counts from the next suggestion on.
        """
        try:
            with self.locked():
                changed = edit(self.plan())
                changed.check()
                self.write(changed)
        except BlockingIOError:
            raise StudentError("Another server is using this sweep. Try again.") from None
        return changed

    def write(self, plan: Plan) -> None:
        """Replace the plan, with the sweep's lock. Raises OSError."""
        write_json(self.folder / plans.FILE, plan.values(), lasting=True)


class SweepStore:
    """The sweeps beside the runs of a folder."""

    def __init__(self, root: Path) -> None:
        """Look below a folder of runs."""
        self.root = root / FOLDER

    @os_errors_as_sentences()
    def create(self, plan: Plan) -> Sweep:
        """Make a sweep's folder, whole at once. Raises ValueError, in a sentence."""
        plan.check()
        with limit_lock(self.root.parent, "sweeps"):
            if len(self.list()) >= MAX:
                raise StudentError("There are {most} sweeps already. Delete one first.", most=MAX)
            self.root.mkdir(parents=True, exist_ok=True)
            name = new_id()
            draft = self.root / f"{_DRAFT}{name}"
            try:
                draft.mkdir()
                Sweep(draft).write(plan)
            except (OSError, ValueError):
                shutil.rmtree(draft, ignore_errors=True)
                raise
            rename(draft, self.root / name)
            sync_folder(self.root)
            return Sweep(self.root / name)

    def list(self) -> list[Sweep]:
        """Return all sweeps, newest first, the damaged behind them. Never raises."""
        try:
            with os.scandir(self.root) as entries:
                found = [
                    Sweep(Path(entry.path))
                    for entry in entries
                    if ID.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
                ]
        except OSError:
            return []
        return sorted(found, key=_age, reverse=True)

    def get(self, sweep_id: str) -> Sweep:
        """Return the sweep with an id. Raises SweepNotFound, in a sentence."""
        if not ID.fullmatch(sweep_id) or not os.path.isdir(self.root / sweep_id):
            raise SweepNotFound("There is no sweep {sweep_id}.", sweep_id=sweep_id[:64])
        return Sweep(self.root / sweep_id)

    @os_errors_as_sentences()
    def delete(self, sweep_id: str) -> None:
        """Move a sweep to the trash, from where ``undelete`` restores it; its runs stay.

        Raises ValueError, in a sentence.
        """
        sweep = self.get(sweep_id)
        with contextlib.suppress(SweepDamaged):
            if sweep.plan().state in ("active", "stopping"):
                raise StudentError("This sweep is running. Stop it first.")
        trash.put(self.root, sweep.id)

    def deleted(self) -> tuple[Sweep, ...]:
        """Return the sweeps that can be restored, the last deleted first. Never raises."""
        return tuple(Sweep(deleted.folder) for deleted in reversed(trash.deleted(self.root)))

    @os_errors_as_sentences()
    def undelete(self, sweep_id: str) -> Sweep:
        """Restore a sweep from the trash. Raises ValueError, in a sentence."""
        if not ID.fullmatch(sweep_id) or not trash.restore(self.root, sweep_id):
            raise SweepNotFound(
                "There is no deleted sweep {sweep_id} to restore.", sweep_id=sweep_id[:64]
            )
        return self.get(sweep_id)


def _age(sweep: Sweep) -> str:
    try:
        return sweep.plan().created
    except SweepDamaged:
        return ""


TrialState = Literal["running", "complete", "diverged", "failed"]
"""A diverged trial counts as a bad one; a failed one says nothing of its settings."""

Figure = Annotated[float, number(-sys.float_info.max, sys.float_info.max)]

MAX_BYTES = 64 * 2**20
"""Of the trials; a sweep of 1,000 runs writes some 0.5 MB."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One suggestion and its result.

    number: from 0, in the order in which they were made. values: setting -> value. run_id: noted
    before the run exists. begun: the run was queued. value: the figure, if complete. why: its
    result in a sentence, or "". held: its run was stopped with the sweep, and resumes with it.
    resumed: how often it was resumed.
    """

    number: Annotated[int, whole(0, 10**9)]
    values: dict[str, Value]
    state: TrialState = "running"
    run_id: Annotated[str, matching(ID)] | None = None
    begun: bool = False
    value: Figure | None = None
    why: Annotated[str, text(100_000)] = ""
    held: bool = False
    resumed: Annotated[int, whole(0, 10**9)] = 0

    @property
    def has_run(self) -> bool:
        """Whether a run was spent on it."""
        return self.run_id is not None and self.begun


_STORED = Stored(list[Trial], TRIALS)


def read_trials(sweep: Sweep) -> list[Trial]:
    """Return every trial of a sweep, the first first. Raises SweepDamaged, in a sentence."""
    try:
        trials = _STORED.read(object_of(sweep.trials, most=MAX_BYTES).get("trials"))
        for n, trial in enumerate(trials):
            if trial.number != n or (trial.value is None) == (trial.state == "complete"):
                raise Unreadable("trial {n} is incomplete", n=n)
        return trials
    except FileNotFoundError:
        return []
    except Unreadable as error:
        raise SweepDamaged(
            "The trials of the sweep {name} cannot be read ({what}).",
            name=sweep.id,
            what=error.sentence,
        ) from None


class Trials:
    """The trials of a sweep, for the holder of its lock; each change is written at once."""

    def __init__(self, sweep: Sweep, plan: Plan) -> None:
        """Read the trials. Raises SweepDamaged, in a sentence."""
        self.sweep, self.plan, self.all = sweep, plan, read_trials(sweep)

    def add(self, values: Mapping[str, Value], **known: Any) -> Trial:
        """Add a trial. Raises OSError."""
        return self._write(Trial(len(self.all), dict(values), **known))

    def change(self, trial: Trial, **changes: Any) -> Trial:
        """Change some fields of a trial. Raises OSError."""
        return self._write(dataclasses.replace(trial, **changes))

    def _write(self, trial: Trial) -> Trial:
        self.all[trial.number : trial.number + 1] = [trial]
        content = json.dumps({"trials": _STORED.plain(self.all)}, allow_nan=False)
        write_bytes(self.sweep.trials, content.encode(), lasting=True)
        return trial

    def suggestion(self) -> dict[str, Value] | None:
        """Return the settings of the next trial, None where every grid point was tried.

        The sampler is made anew, with a seed that depends on how many trials there are, so that a
        restarted server, or two on one folder, suggest the same as one.
        """
        plan = self.plan
        if plan.search == "grid":
            placed = (space.point_in(plan.base, plan.space, trial.values) for trial in self.all)
            tried = {frozenset(values.items()) for values in placed if values is not None}
            points = space.grid(plan.space)
            return next((point for point in points if frozenset(point.items()) not in tried), None)
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna_study(plan, self.all)
        seed = (plan.seed * 1_000_003 + len(self.all) * 7919 + 1) % (2**31 - 1)
        if plan.search == "tpe":
            first = min(10, max(4, plan.most_runs // 4))  # random; all of a short sweep with 10
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                study.sampler = optuna.samplers.TPESampler(
                    seed=seed, n_startup_trials=first, constant_liar=True
                )
        else:
            study.sampler = optuna.samplers.RandomSampler(seed=seed)
        return study.ask(distributions(plan.space)).params


def optuna_study(
    plan: Plan, trials: Sequence[Trial], names: Mapping[str, str] | None = None
) -> optuna.Study:
    """Return the trials that lie in the plan's space as a study.

    names: what the study calls each setting; its path unless given.
    """
    import optuna

    names = names or {dimension.path: dimension.path for dimension in plan.space}
    ranges = {names[path]: dimension for path, dimension in distributions(plan.space).items()}
    states = optuna.trial.TrialState
    by_name = {"complete": states.COMPLETE, "running": states.RUNNING, "diverged": states.PRUNED}
    study = optuna.create_study(direction=plan.looks_for.direction)
    for trial in trials:
        values = space.point_in(plan.base, plan.space, trial.values)
        if values is not None and trial.state != "failed":
            study.add_trial(
                optuna.trial.create_trial(
                    state=by_name[trial.state],
                    value=trial.value,
                    params={names[path]: value for path, value in values.items()},
                    distributions=ranges,
                )
            )
    return study


def distributions(dimensions: Space) -> dict[str, BaseDistribution]:
    """Return a space as Optuna's distributions."""
    import optuna

    found: dict[str, BaseDistribution] = {}
    for dimension in dimensions:
        if isinstance(dimension, Choices):
            found[dimension.path] = optuna.distributions.CategoricalDistribution(dimension.values)
        elif dimension.is_whole:
            low, high = int(dimension.low), int(dimension.high)
            step = 1 if dimension.is_log else dimension.step
            high = low + (high - low) // step * step
            found[dimension.path] = optuna.distributions.IntDistribution(
                low, high, log=dimension.is_log, step=step
            )
        else:
            found[dimension.path] = optuna.distributions.FloatDistribution(
                dimension.low, dimension.high, log=dimension.is_log
            )
    return found
