"""An imported Optuna study, read only: its journal is copied and never continued.

Its author is unknown. It is read as JSON, line by line, and only numbers and words of its trials
are used; a pickled sampler in it is not touched. Names are shortened and stripped of markup.
"""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tfm_core.reading import Unreadable, object_of
from tfm_core.runs.disk.atomic import write_bytes, write_json
from tfm_core.sentences import N_, StudentError, in_bytes
from tfm_core.stored import Moment, Stored, line
from tfm_core.sweeps.objectives import Objective
from tfm_core.sweeps.plan import SweepDamaged
from tfm_core.sweeps.space import Value

if TYPE_CHECKING:
    import optuna
    from optuna.storages import JournalStorage

FILE = "foreign.json"
JOURNAL = "journal.log"
MAX_BYTES = 16 * 2**20
MAX_TRIALS, MAX_SETTINGS, MAX_STUDIES = 2_000, 40, 50
_MAX_WORD = 60
_MAX_FILE = 2**14


class NotAStudy(StudentError):
    """A file is no study of Optuna that can be looked at; the sentence says why."""


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """The record of an imported study: its file's name, time and owner."""

    name: Annotated[str, line(_MAX_WORD)]
    created: Moment
    owner: Annotated[str, line(64)] | None = None


_STORED = Stored(ImportRecord, FILE)


@dataclass(frozen=True, slots=True)
class ForeignTrial:
    """A trial: its number as Optuna has it, its settings, its figure, None if it has none."""

    number: int
    values: Mapping[str, Value]
    state: str
    value: float | None


@dataclass(frozen=True, slots=True)
class ForeignStudy:
    """A study as it can be looked at: what it looks for, its trials, and the settings of each."""

    name: str
    looks_for: Objective
    trials: tuple[ForeignTrial, ...]

    @property
    def complete(self) -> list[ForeignTrial]:
        """The trials with a figure, the best first."""
        sign = -1 if self.looks_for.is_maximized else 1
        known = [one for one in self.trials if one.value is not None]
        return sorted(known, key=lambda one: (sign * (one.value or 0.0), one.number))

    @property
    def settings(self) -> list[str]:
        """The settings that every trial with a figure has: those that can be drawn together."""
        complete = self.complete
        return [name for name in complete[0].values if all(name in one.values for one in complete)]


def write(folder: Path, content: bytes, brought: ImportRecord) -> None:
    """Write a study into a new folder, where it can be looked at. Raises NotAStudy and OSError."""
    lines = _checked(content)
    write_bytes(folder / JOURNAL, lines, lasting=True)
    read_studies(folder)
    write_json(folder / FILE, dataclasses.asdict(brought), lasting=True)


def read(folder: Path) -> ImportRecord | None:
    """Return what is noted of a study from elsewhere, None where the folder holds none."""
    try:
        return _STORED.salvage(object_of(folder / FILE, most=_MAX_FILE))[0]
    except (FileNotFoundError, Unreadable):
        return None


def read_studies(folder: Path) -> list[ForeignStudy]:
    """Return the studies of a journal that can be looked at. Raises NotAStudy, in a sentence."""
    storage = _storage(folder / JOURNAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            studies = storage.get_all_studies()
        except Exception as error:
            raise _unreadable(error) from error
        if not studies:
            raise NotAStudy("This journal holds no study.")
        if len(studies) > MAX_STUDIES:
            raise NotAStudy(
                "This journal holds {n:,} studies; the limit is {most}.",
                n=len(studies),
                most=MAX_STUDIES,
            )
        found: list[ForeignStudy] = []
        why: NotAStudy | None = None
        for study in studies:
            try:
                found.append(_look(storage, study))
            except NotAStudy as error:
                why = why or error
            except Exception as error:
                why = why or _unreadable(error)
    if not found:
        assert why is not None
        raise why
    return sorted(found, key=lambda one: -len(one.trials))


def _checked(content: bytes) -> bytes:
    """Return the complete lines of a journal. Raises NotAStudy."""
    if len(content) > MAX_BYTES:
        raise NotAStudy(
            "This file has {size}; the limit for a journal is {most}.",
            size=in_bytes(len(content)),
            most=in_bytes(MAX_BYTES),
        )
    if content.startswith(b"SQLite format 3"):
        raise NotAStudy("This is an Optuna database. Copy its study with optuna.copy_study.")
    if content.startswith(b"\x80"):
        raise NotAStudy("This is a pickle, which could run code.")
    whole = content[: content.rfind(b"\n") + 1]  # a copy may end in the middle of a line
    if not whole.strip():
        raise NotAStudy("This file has no complete line.")
    for number, row in enumerate(whole.split(b"\n"), start=1):
        if row.strip() and not _is_record(row):
            raise NotAStudy("Line {line} is not a line of an Optuna journal.", line=number)
    return whole


def _is_record(line: bytes) -> bool:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and isinstance(values.get("op_code"), int)


def _storage(journal: Path) -> JournalStorage:
    import optuna
    from optuna.storages import journal as journals

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if not journal.is_file() or journal.is_symlink():
        raise SweepDamaged("{name} is not a plain file.", name=journal.name)
    try:
        return optuna.storages.JournalStorage(journals.JournalFileBackend(str(journal)))
    except Exception as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> NotAStudy:
    said = f"{type(error).__name__}: {error}".splitlines()[0][:120]
    return NotAStudy("Optuna cannot read this journal ({said}).", said=said)


def _look(storage: JournalStorage, frozen: Any) -> ForeignStudy:
    name = clean(frozen.study_name)
    directions = storage.get_study_directions(frozen._study_id)
    if len(directions) != 1:
        raise NotAStudy(
            "The study “{name}” optimises {n} metrics, not one.", name=name, n=len(directions)
        )
    trials = storage.get_all_trials(frozen._study_id, deepcopy=False)
    if len(trials) > MAX_TRIALS:
        raise NotAStudy(
            "The study “{name}” has {n:,} trials; the limit is {most:,}.",
            name=name,
            n=len(trials),
            most=MAX_TRIALS,
        )
    tried = tuple(_tried(one) for one in trials)
    if not any(one.value is not None for one in tried):
        raise NotAStudy(
            "None of the {n:,} trials of “{name}” has a value yet.", name=name, n=len(tried)
        )
    most = max(len(one.values) for one in tried)
    if most > MAX_SETTINGS:
        raise NotAStudy(
            "The study “{name}” varies {n} settings; the limit is {most}.",
            name=name,
            n=most,
            most=MAX_SETTINGS,
        )
    is_maximized = directions[0].name == "MAXIMIZE"
    figure = N_("value, higher is better") if is_maximized else N_("value, lower is better")
    return ForeignStudy(name, Objective("foreign", figure, is_maximized), tried)


def _tried(one: optuna.trial.FrozenTrial) -> ForeignTrial:
    states = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
    state = states.get(one.state.name, "running")
    value = one.value if state == "complete" and one.values else None
    is_number = isinstance(value, int | float) and math.isfinite(value)
    values = {clean(name): _plain(given) for name, given in one.params.items()}
    return ForeignTrial(
        one.number, values, state, float(value) if is_number and value is not None else None
    )


def _plain(value: Any) -> Value:
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return clean(str(value))


def clean(text: str) -> str:
    """Return words of a stranger in one short line that no figure takes for markup."""
    plain = "".join(c if c.isprintable() else " " for c in str(text)[: 4 * _MAX_WORD])
    words = " ".join(plain.replace("<", "‹").replace(">", "›").split())
    return words[:_MAX_WORD] or "–"


def as_study(look: ForeignStudy) -> optuna.Study:
    """Return the trials with a figure as a study of Optuna, in memory, with ranges of their own.

    What is a number in every trial is a range, all else are choices.
    """
    import optuna

    kinds = optuna.distributions
    study = optuna.create_study(direction=look.looks_for.direction)
    ranges: dict[str, optuna.distributions.BaseDistribution] = {}
    for name in look.settings:
        values = [one.values[name] for one in look.complete]
        numbers = [
            float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)
        ]
        if len(numbers) == len(values) and len(set(numbers)) > 1:
            low, high = min(numbers), max(numbers)
            ranges[name] = kinds.FloatDistribution(low, high, log=low > 0 and high >= 100 * low)
        else:
            ranges[name] = kinds.CategoricalDistribution(sorted({str(value) for value in values}))
    for one in sorted(look.complete, key=lambda one: one.number):
        params = {
            name: one.values[name]
            if isinstance(kind, kinds.FloatDistribution)
            else str(one.values[name])
            for name, kind in ranges.items()
        }
        study.add_trial(
            optuna.trial.create_trial(value=one.value, params=params, distributions=ranges)
        )
    return study
