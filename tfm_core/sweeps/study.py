"""The study of a sweep: Optuna's suggestions and their results, in Optuna's journal.

Each edition of a sweep's space is a study of its own in one journal, because Optuna does not let a
study change the values of a setting. Older trials that lie in the new space are carried over, so
that no result is lost. ``ATTRIBUTES`` are stored as Optuna's user attributes of a trial.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tfm_core.reading import is_plain
from tfm_core.sentences import N_, StudentError
from tfm_core.sweeps import space as spaces
from tfm_core.sweeps.plan import Plan, SweepDamaged, space_of, space_values
from tfm_core.sweeps.searches import PRUNINGS, SEARCHES
from tfm_core.sweeps.space import Choices, Space, Value
from tfm_core.sweeps.store import Sweep

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.storages import JournalStorage
    from optuna.trial import FrozenTrial

TrialState = Literal["running", "complete", "pruned", "failed"]

ATTRIBUTES = ("run", "begun", "why", "pruning", "held", "resumed", "from")
"""Notes on a trial.

run: the id of its run, noted before the run exists. begun: the run was queued. why: its result in a
sentence. pruning: it was pruned, and its run asked to stop. held: its run was stopped with the
sweep, and resumes with it. resumed: how often it was resumed. from: the study and number that it
was carried over from.
"""

MAX_BYTES = 256 * 2**20
"""Of a journal; a sweep of 1,000 runs writes some 2 MB."""

_LOCK_SECONDS = 3  # after which Optuna takes the lock file of a killed process over
_STALE_SECONDS = 1.0  # the same, if only another program can hold it: it writes one line


@dataclass(frozen=True, slots=True)
class Trial:
    """One suggestion and its result.

    number: from 0, as Optuna counts, in the order in which they were made. study, key: where Optuna
    has it. values: setting -> value. value: the figure. reports: rung -> figure on the way. why: a
    sentence, or "".
    """

    number: int
    study: str
    key: int
    values: Mapping[str, Value]
    state: TrialState
    value: float | None
    run_id: str | None
    begun: bool
    why: str
    reports: Mapping[int, float]
    held: bool = False
    resumed: int = 0
    pruning: str = ""

    @property
    def has_run(self) -> bool:
        """Whether a run was spent on it."""
        return self.run_id is not None and self.begun


class Study:
    """The opened studies of a sweep. Writing needs the sweep's lock."""

    def __init__(self, sweep: Sweep, plan: Plan, *, writes: bool = False) -> None:
        """Open the journal. Raises SweepDamaged, in a sentence, and OSError.

        writes: make what is missing, and cut off half a line that a killed server left.
        """
        self.sweep = sweep
        self._writes = writes
        if writes:
            _mend(sweep.journal)
        elif not sweep.journal.exists():
            self._storage: JournalStorage | None = None
            self.plan = plan
            return
        self._storage = _opened(sweep.journal)
        self.follow(plan)

    def follow(self, plan: Plan) -> None:
        """Go on with the plan as it is now. Raises SweepDamaged and OSError."""
        self.plan = plan
        with _readable(self.sweep):
            self._check_names()
            if self._writes:
                self.current()

    def current(self) -> optuna.Study:
        """Return the study of the plan's edition, with a sampler for its next suggestion."""
        import optuna

        plan, name = self.plan, self._name(self.plan.edition)
        assert self._storage is not None
        if name not in self._names():
            made = optuna.create_study(
                storage=self._storage, study_name=name, direction=plan.looks_for.direction
            )
            made.set_user_attr("space", space_values(plan.space))
            made.set_user_attr("sweep", plan.name)
        study = self._load(name)
        if "space" not in study.user_attrs:  # killed between the two
            study.set_user_attr("space", space_values(plan.space))
        n = len(study.get_trials(deepcopy=False))
        if plan.search == "cma-es":
            _check_optimizers(study.get_trials(deepcopy=False), self.sweep)
        study.sampler = SEARCHES[plan.search].make(_seed(plan.seed, n), plan.most_runs)
        return study

    def trials(self) -> list[Trial]:
        """Return every trial, each once, in the order in which they began.

        Raises SweepDamaged, in a sentence.
        """
        if self._storage is None:
            return []
        with _readable(self.sweep):
            found = []
            for name in self._editions():
                study = self._load(name)
                space = _space(study.user_attrs.get("space"))
                if study.direction.name.lower() != self.plan.looks_for.direction:
                    raise _foreign(self.sweep, N_("it optimises another metric"))
                for one in study.get_trials(deepcopy=False):
                    if "from" in one.user_attrs or one.datetime_start is None:
                        continue  # reported to its own study; or waiting, for the next ask
                    _check_settings(one, space, self.sweep)
                    found.append((one, name))
            found.sort(key=lambda pair: str(pair[0].datetime_start))
            return [_trial(one, name, n) for n, (one, name) in enumerate(found)]

    def ask(self, fixed: Mapping[str, Value] | None = None) -> None:
        """Make a trial: of these values, or of what the sampler suggests."""
        study = self.current()
        waits = any(one.state.name == "WAITING" for one in study.get_trials(deepcopy=False))
        if fixed is not None and not waits:  # else a server was killed before it asked
            study.enqueue_trial(dict(fixed))
        study.ask(distributions(self.plan.space))

    def note(self, trial: Trial, name: str, value: Any) -> None:
        """Note something of a trial that runs: one of ``ATTRIBUTES``."""
        assert name in ATTRIBUTES
        assert self._storage is not None
        self._storage.set_trial_user_attr(self._id(trial), name, value)

    def report(self, trial: Trial, reports: Mapping[int, float]) -> None:
        """Tell what was measured on the way."""
        assert self._storage is not None
        for rung, value in reports.items():
            if rung not in trial.reports:
                self._storage.set_trial_intermediate_value(self._id(trial), rung, value)

    def is_hopeless(self, trial: Trial) -> bool:
        """Return whether the pruner gives a trial up, by what was reported of it."""
        study = self._load(trial.study)
        frozen = study.get_trials(deepcopy=False)[trial.key]
        if not frozen.intermediate_values:
            return False
        return bool(PRUNINGS[self.plan.pruning].make().prune(study, frozen))

    def tell(self, trial: Trial, state: TrialState, value: float | None, why: str = "") -> None:
        """End a trial, with its value if it is complete, and the reason in words."""
        import optuna

        if why:
            self.note(trial, "why", str(why))
        told = optuna.trial.TrialState
        states = {"complete": told.COMPLETE, "pruned": told.PRUNED, "failed": told.FAIL}
        self._load(trial.study).tell(
            trial.key,
            value if state == "complete" else None,
            state=states[state],
            skip_if_finished=True,
        )

    def carry(self) -> None:
        """Take over into the newest study what older ones know of its space."""
        names = self._editions()
        if len(names) < 2 or names[-1] != self._name(self.plan.edition):
            return
        import optuna

        newest = self._load(names[-1])
        there = {
            tuple(one.user_attrs["from"])
            for one in newest.get_trials(deepcopy=False)
            if "from" in one.user_attrs
        }
        ranges = distributions(self.plan.space)
        for name in names[:-1]:
            for one in self._load(name).get_trials(deepcopy=False):
                values = spaces.point_in(self.plan.base, self.plan.space, one.params)
                is_known = one.state.is_finished() and one.state.name != "FAIL"
                if not is_known or "from" in one.user_attrs or (name, one.number) in there:
                    continue
                if values is None:
                    continue
                newest.add_trial(
                    optuna.trial.create_trial(
                        state=one.state,
                        value=one.value,
                        params=values,
                        distributions=ranges,
                        user_attrs={**one.user_attrs, "from": [name, one.number]},
                        intermediate_values=one.intermediate_values,
                    )
                )

    def _names(self) -> list[str]:
        assert self._storage is not None
        return [study.study_name for study in self._storage.get_all_studies()]

    def _editions(self) -> list[str]:
        """Return the names of the sweep's studies, the oldest first."""
        names = set(self._names())
        known = [self._name(n) for n in range(1, self.plan.edition + 1)]
        return [name for name in known if name in names]

    def _check_names(self) -> None:
        names = self._names()
        if names and not self._editions():
            shown = names[0].encode("utf-8", "backslashreplace").decode("utf-8")[:40]
            raise _foreign(self.sweep, N_("it holds the study “{name}”", name=shown))

    def _name(self, edition: int) -> str:
        return f"{self.sweep.id}-{edition}"

    def _load(self, name: str) -> optuna.Study:
        import optuna

        assert self._storage is not None
        with contextlib.suppress(KeyError):
            return optuna.load_study(
                study_name=name, storage=self._storage, sampler=SEARCHES["random"].make(0, 1)
            )
        raise _foreign(self.sweep, N_("the study {name} is not in it", name=name))

    def _id(self, trial: Trial) -> int:
        assert self._storage is not None
        study_id = self._storage.get_study_id_from_name(trial.study)
        return self._storage.get_trial_id_from_study_id_trial_number(study_id, trial.key)


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


def _trial(one: FrozenTrial, study: str, number: int) -> Trial:
    attributes = one.user_attrs
    states: dict[str, TrialState] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
    run_id, resumed = attributes.get("run"), attributes.get("resumed", 0)
    return Trial(
        number,
        study,
        one.number,
        dict(one.params),
        states.get(one.state.name, "running"),
        one.value if one.values else None,
        run_id if isinstance(run_id, str) else None,
        attributes.get("begun") is True,
        str(attributes.get("why") or ""),
        dict(one.intermediate_values),
        held=attributes.get("held") is True,
        resumed=resumed if isinstance(resumed, int) else 0,
        pruning=str(attributes.get("pruning") or ""),
    )


def _seed(seed: int, n: int) -> int:
    """Return a seed for the n-th suggestion; the same at every server."""
    return (seed * 1_000_003 + n * 7919 + 1) % (2**31 - 1)


def _opened(journal: Path) -> JournalStorage:
    import optuna
    from optuna.storages import journal as journals

    _quieten()
    if not is_plain(journal) and journal.exists():
        raise SweepDamaged("{name} is not a plain file.", name=journal.name)
    if journal.exists() and (size := journal.stat().st_size) > MAX_BYTES:
        raise SweepDamaged(
            "{name} has {size:,} bytes, too many for a journal.", name=journal.name, size=size
        )
    lock = journals.JournalFileOpenLock(str(journal), grace_period=_LOCK_SECONDS)
    with _readable(Sweep(journal.parent)):
        return optuna.storages.JournalStorage(
            journals.JournalFileBackend(str(journal), lock_obj=lock)
        )


@cache
def _quieten() -> None:
    """Let Optuna say on the server's log what is wrong, and not what is well."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)


@contextlib.contextmanager
def _readable(sweep: Sweep) -> Iterator[None]:
    """Raise SweepDamaged, in a sentence, where Optuna cannot make sense of the journal."""
    try:
        yield
    except (StudentError, OSError):
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0][:120]
        raise SweepDamaged(
            "The journal of the sweep {name} cannot be read ({said}).", name=sweep.id, said=said
        ) from error


def _foreign(sweep: Sweep, what: str) -> SweepDamaged:
    return SweepDamaged(
        "The journal in {name} is not this sweep's ({what}).", name=sweep.id, what=what
    )


def _space(values: object) -> Space:
    return () if values is None else space_of(values)


def _check_settings(one: FrozenTrial, space: Space, sweep: Sweep) -> None:
    known = {dimension.path for dimension in space}
    strange = [name for name in one.params if name not in known]
    if strange:
        raise _foreign(sweep, N_("a trial in it varies “{name}”", name=strange[0][:40]))


def _mend(journal: Path) -> None:
    """Cut off half a line at the end: its writer was killed, and the next would join it.

    Its lock file is taken away too: whoever holds the sweep is the only server that writes.
    """
    lock = journal.with_name(f"{journal.name}.lock")
    with contextlib.suppress(FileNotFoundError):
        while time.time() - os.lstat(lock).st_mtime < _STALE_SECONDS:
            time.sleep(0.02)
        lock.unlink()
    if not is_plain(journal) or not (size := journal.stat().st_size):
        return
    with open(journal, "r+b") as file:
        file.seek(max(0, size - 2**20))
        tail = file.read()
        if tail.endswith(b"\n"):
            return
        file.truncate(size - len(tail) + tail.rfind(b"\n") + 1 if b"\n" in tail else 0)
        file.flush()
        os.fsync(file.fileno())


class _Plain(pickle.Unpickler):
    """Reads only the state of a CMA-ES: arrays, numbers, and their random generator."""

    def find_class(self, module: str, name: str) -> Any:
        is_optimizer = module.split(".")[0] == "cmaes" and name in {"CMA"}
        is_array = module.split(".")[0] == "numpy" and name in {
            "_reconstruct",
            "ndarray",
            "dtype",
            "scalar",
            "_frombuffer",
            "RandomState",
            "MT19937",
            "__randomstate_ctor",
            "__bit_generator_ctor",
            "SeedSequence",
            "__pyx_unpickle_SeedSequence",
        }
        if not (is_optimizer or is_array):
            raise pickle.UnpicklingError(f"{module}.{name}")
        __import__(module)
        return getattr(sys.modules[module], name)


_CMA = "cma:optimizer"


def _check_optimizers(trials: list[FrozenTrial], sweep: Sweep) -> None:
    """Raise SweepDamaged where a trial holds a CMA-ES that is anything else.

    Optuna keeps its CMA-ES pickled in the journal and would load whatever lies there.
    """
    for one in trials:
        parts = {name: text for name, text in one.system_attrs.items() if name.startswith(_CMA)}
        if not parts:
            continue
        try:
            text = "".join(parts[f"{_CMA}:{n}"] for n in range(len(parts)))
            _Plain(io.BytesIO(bytes.fromhex(text))).load()
        except Exception:
            raise _foreign(sweep, N_("its CMA-ES state comes from another program")) from None
