"""The trials of a sweep, in ``trials.json``, and Optuna's suggestions for the next one.

A sweep is known by its plan and this file alone: each suggestion is asked of an Optuna study made
of what earlier trials, of any range, say of the plan's space.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tfm_core.reading import Unreadable, object_of
from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.runs.run import ID
from tfm_core.stored import Stored, matching, number, text, whole
from tfm_core.sweeps import space as spaces
from tfm_core.sweeps.plan import Plan, SweepDamaged
from tfm_core.sweeps.space import Choices, Space, Value
from tfm_core.sweeps.store import TRIALS, Sweep

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

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


def read(sweep: Sweep) -> list[Trial]:
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
    """The trials of a sweep for whoever holds its lock; each change is written at once."""

    def __init__(self, sweep: Sweep, plan: Plan) -> None:
        """Read the trials. Raises SweepDamaged, in a sentence."""
        self.sweep, self.plan, self.all = sweep, plan, read(sweep)

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
            return self._untried()
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

    def _untried(self) -> dict[str, Value] | None:
        plan = self.plan
        placed = (spaces.point_in(plan.base, plan.space, trial.values) for trial in self.all)
        tried = {frozenset(values.items()) for values in placed if values is not None}
        points = spaces.grid(plan.space)
        return next((point for point in points if frozenset(point.items()) not in tried), None)


def optuna_study(
    plan: Plan, trials: Sequence[Trial], names: Mapping[str, str] | None = None
) -> optuna.Study:
    """Return the trials that lie in the plan's space as a study.

    names: what the study calls each setting; its path unless given.
    """
    import optuna

    names = names or {one.path: one.path for one in plan.space}
    ranges = {names[path]: one for path, one in distributions(plan.space).items()}
    states = optuna.trial.TrialState
    by_name = {"complete": states.COMPLETE, "running": states.RUNNING, "diverged": states.PRUNED}
    study = optuna.create_study(direction=plan.looks_for.direction)
    for trial in trials:
        values = spaces.point_in(plan.base, plan.space, trial.values)
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


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """Return a space as Optuna has it."""
    import optuna

    found: dict[str, BaseDistribution] = {}
    for one in space:
        if isinstance(one, Choices):
            found[one.path] = optuna.distributions.CategoricalDistribution(one.values)
        elif one.is_whole:
            low, high = int(one.low), int(one.high)
            step = 1 if one.is_log else one.step
            high = low + (high - low) // step * step
            found[one.path] = optuna.distributions.IntDistribution(
                low, high, log=one.is_log, step=step
            )
        else:
            found[one.path] = optuna.distributions.FloatDistribution(
                one.low, one.high, log=one.is_log
            )
    return found
