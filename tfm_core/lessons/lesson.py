"""A lesson, read from its two files: ``<id>.toml`` says what is done, Markdown what is said.

    id = "smallest-model"
    minutes = 12
    pages = ["train", "compare"]

    [experiment]
    preset = "copy"
    set = { "training.steps" = 300 }
    open = ["model.d_model"]          # all other settings are locked; or: locked = ["seed"]

    [[tasks]]
    id = "smallest"
    check = "smallest"
    setting = "model.d_model"
    values = [8, 16, 32, 64]
    at_least = 0.95

The words stand in ``<language>/<id>.md`` or ``<id>.md`` beside it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from tfm_core import languages
from tfm_core.choices.config import FAMILIES, TASK_FACTS, Experiment, tasks_for
from tfm_core.choices.config.base import Config, ConfigError, Problem, explain
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.compare.differences import differences, settings
from tfm_core.lessons.checks import CHECKS
from tfm_core.lessons.checks.task import Name, Task, Value, with_value
from tfm_core.lessons.words import LessonWords, parse
from tfm_core.reading import Unreadable, content_of, toml_of
from tfm_core.sentences import N_, StudentError, listed

PAGES = (
    "adder", "attention", "before", "build", "by-hand", "captions", "chains", "compare", "draw",
    "encoders", "experiments", "find-the-bug", "gpt", "grokking", "induction", "knockouts", "masks",
    "memorising", "mistakes", "own-data", "parameters", "positions", "practice", "runs", "sinks",
    "specialise", "speed", "superposition", "sweeps", "tensors", "train", "training-step",
    "translate", "try", "walk", "words",
)  # fmt: skip
"""The pages on which a lesson can work; of "try" also by the names of its parts."""

MAX_BYTES = 65_536
"""Of each file of a lesson."""
MAX_TASKS = 12
MAX_NAMED = 3
"""Changed settings that a sentence names."""
ALWAYS_LOCKED = ("model.family", "task.name")
ENGLISH = "en"
P = TypeVar("P", bound=Config)


class _Part(Config):
    model_config = ConfigDict(strict=True)


class _Experiment(_Part):
    """What is trained: a preset, or a family and a task, with changes, and what is open."""

    preset: str = ""
    family: str = ""
    task: str = ""
    set: dict[str, Value] = Field(default_factory=dict)
    open: list[str] | None = None
    locked: list[str] | None = None


class _File(_Part):
    id: Name
    minutes: int = Field(ge=1, le=180)
    order: int = Field(100, ge=0, le=10_000)
    pages: list[str] = Field(default_factory=list, max_length=12)
    experiment: dict[str, Any] | None = None
    tasks: list[dict[str, Any]] = Field(min_length=1, max_length=MAX_TASKS)


@dataclass(frozen=True)
class Lesson:
    """A lesson. pages: on which one works. experiment: what it trains, None for nothing.

    open: the settings that may be changed, as paths. by_language: the words in each language.
    fingerprint: of both files, 16 hexadecimal digits. is_own: added by a teacher.
    """

    id: str
    minutes: int
    order: int
    pages: tuple[str, ...]
    experiment: Experiment | None
    preset: str | None
    open: frozenset[str]
    tasks: tuple[Task, ...]
    by_language: Mapping[str, LessonWords] = field(repr=False)
    fingerprint: str = ""
    is_own: bool = False

    def words(self, language: str = ENGLISH) -> LessonWords:
        """Return the words in a language, in English where it lacks them."""
        return self.by_language.get(language) or self.by_language[ENGLISH]

    def task(self, name: str) -> Task | None:
        """Return the task with an id, or None."""
        return next((task for task in self.tasks if task.id == name), None)

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The labels of the settings of its experiment, by path."""
        if self.experiment is None:
            return {}
        return {path: one.label for path, one in settings(self.experiment).items()}

    def locks(self, path: str) -> bool:
        """Return whether a setting has one value in this lesson."""
        return self.experiment is not None and path not in self.open

    def check(self, experiment: Experiment) -> None:
        """Raise StudentError, in a sentence, where an experiment changes what is locked."""
        if self.experiment is None:
            return
        own, other = _values(self.experiment), _values(experiment)
        changed = [
            path
            for path in own | other
            if path not in self.open and own.get(path) != other.get(path)
        ]
        if not changed:
            return
        rows = {row.field: row for row in differences([self.experiment, experiment])}
        shown = [rows[path] for path in changed if path in rows]
        known = [
            N_(
                "{label} {locked}, not {given}",
                label=row.label,
                locked=row.texts[0],
                given=row.texts[1],
            )
            for row in shown[:MAX_NAMED]
        ]
        raise StudentError(
            "The lesson “{title}” locks this: {changed}. Reset it, or leave the lesson.",
            title=self.words().title,
            changed=listed(known or changed[:MAX_NAMED]),
        )

    def check_setting(self, path: str) -> None:
        """Raise StudentError, in a sentence, where a setting may not change in this lesson."""
        if self.locks(path):
            raise StudentError(
                "The lesson “{title}” locks {label}.",
                title=self.words().title,
                label=self.labels.get(path, path),
            )


def read(path: Path, *, is_own: bool = True) -> Lesson:
    """Return the lesson of a TOML file. Raises ConfigError: file, field and what is wrong."""
    settings_text, texts = _content(path), {}
    for words in _word_files(path):
        texts[words] = _content(words)
    if not texts:
        raise ConfigError(
            [_at(path.name, "", N_("{md} is missing beside it.", md=f"{path.stem}.md"))]
        )
    by_language: dict[str, tuple[str, bytes]] = {}
    for words, text in texts.items():
        language = ENGLISH if words.parent == path.parent else words.parent.name
        by_language.setdefault(language, (words.name, text))
    return made(path.name, settings_text, by_language, is_own=is_own)


def made(
    file: str,
    settings_text: bytes,
    texts: Mapping[str, tuple[str, bytes]],
    *,
    is_own: bool = True,
) -> Lesson:
    """Return the lesson that texts hold. Raises ConfigError: file, field and what is wrong.

    texts: the name and the content of the Markdown in each language.
    """
    problems: list[Problem] = []
    values = _toml(file, settings_text)
    whole = _part(_File, values, file, "", problems)
    by_language = _words(file, texts, problems)
    if whole is None or ENGLISH not in by_language or len(by_language) < len(texts):
        raise ConfigError(problems)
    if f"{whole.id}.toml" != file:
        words = N_("the file must be called {name}.toml, like its id.", name=whole.id)
        problems.append(_at(file, "id", words))
    problems += [
        _at(file, "pages", N_("there is no page {name}.", name=name[:40]))
        for name in whole.pages
        if name not in PAGES
    ]
    experiment, opened = _experiment(whole.experiment, file, problems)
    tasks = [
        task
        for number, raw in enumerate(whole.tasks, 1)
        if (task := _task(raw, file, number, problems)) is not None
    ]
    for words_of_one, (name, _text) in zip(by_language.values(), texts.values(), strict=True):
        problems += _unmatched(tasks, whole.tasks, words_of_one, file, name)
    for number, task in enumerate(tasks, 1):
        place, of_task = f"tasks[{number}] {task.id}", by_language[ENGLISH].tasks.get(task.id)
        found = () if of_task is None else task.problems(of_task, experiment)
        problems += [_at(file, place, sentence) for sentence in found]
    if problems:
        raise ConfigError(problems)
    mark = hashlib.sha256(settings_text)
    for language in sorted(texts):
        mark.update(texts[language][1])
    return Lesson(
        whole.id,
        whole.minutes,
        whole.order,
        tuple(whole.pages),
        experiment,
        (whole.experiment or {}).get("preset"),
        opened,
        tuple(tasks),
        by_language,
        mark.hexdigest()[:16],
        is_own,
    )


def _words(
    file: str, texts: Mapping[str, tuple[str, bytes]], problems: list[Problem]
) -> dict[str, LessonWords]:
    """Return the words in each language, without those that are wrong."""
    found = {}
    for language, (name, text) in texts.items():
        try:
            found[language] = parse(_decoded(name, text), name)
        except ConfigError as error:
            problems += error.problems
    if ENGLISH not in texts:
        problems.append(_at(file, "", N_("its words in English are missing.")))
    return found


def _word_files(path: Path) -> list[Path]:
    """Return the Markdown files of a lesson, that beside it last."""
    name = f"{path.stem}.md"
    found = [
        each
        for place in languages.places(path.parent)
        for each in sorted(place.glob(f"*/{name}"))
        if each.is_file()
    ]
    return [*found, *([path.parent / name] if (path.parent / name).is_file() else [])]


def _content(path: Path) -> bytes:
    try:
        return content_of(path, most=MAX_BYTES)
    except FileNotFoundError:
        raise ConfigError([_at(path.name, "", N_("there is no such file."))]) from None
    except Unreadable as error:
        raise ConfigError([_at(path.name, "", N_("{why}.", why=error.sentence))]) from None


def _decoded(file: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ConfigError([_at(file, "", N_("it is not UTF-8 text."))]) from None


def _toml(file: str, content: bytes) -> dict[str, Any]:
    try:
        return toml_of(_decoded(file, content).removeprefix("\ufeff"))
    except Unreadable as error:
        raise ConfigError([_at(file, "", N_("{why}.", why=error.sentence))]) from None


def _at(file: str, place: str, sentence: str) -> Problem:
    """Return a problem that names file and field."""
    where = f"{file}, {place}" if place else file
    return Problem(where, N_("{where}: {sentence}", where=where, sentence=sentence))


def _part(
    kind: type[P], values: object, file: str, place: str, problems: list[Problem]
) -> P | None:
    """Return plain values as a part of a lesson, or None and what is wrong with them."""
    try:
        return kind.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        for problem in explain(error, kind):
            where = ".".join(filter(None, (place, problem.field)))
            problems.append(_at(file, where, problem.sentence))
    return None


def _task(raw: Mapping[str, Any], file: str, number: int, problems: list[Problem]) -> Task | None:
    place, name = f"tasks[{number}]", raw.get("check")
    if not isinstance(name, str) or name not in CHECKS:
        known = ", ".join(CHECKS)
        words = N_("check is missing; choose from {known}.", known=known)
        if name is not None:
            words = N_("check is {name}; choose from {known}.", name=repr(name)[:60], known=known)
        problems.append(_at(file, place, words))
        return None
    task = _part(CHECKS[name], dict(raw), file, place, problems)
    if task is not None and task.page and task.page not in PAGES:
        words = N_("there is no page {name}.", name=task.page[:40])
        problems.append(_at(file, f"{place}.page", words))
    return task


def _unmatched(
    tasks: list[Task], raw: list[dict[str, Any]], words: LessonWords, file: str, name: str
) -> list[Problem]:
    """Return a problem for each task without words, or with the id of another, and vice versa."""
    ids = [task.id for task in tasks]
    found = [
        _at(file, f"tasks[{number}]", N_("the id {name} is used twice.", name=one))
        for number, one in enumerate(ids, 1)
        if one in ids[: number - 1]
    ]
    found += [
        _at(name, "", N_("the section “## {task}” is missing.", task=one))
        for one in dict.fromkeys(ids)
        if one not in words.tasks
    ]
    known = {one.get("id") for one in raw}
    found += [
        _at(name, f"## {one}", N_("{file} has no task with this id.", file=file))
        for one in words.tasks
        if one not in known
    ]
    return found


def _experiment(
    raw: object, file: str, problems: list[Problem]
) -> tuple[Experiment | None, frozenset[str]]:
    """Return what a lesson trains, and the settings that are open."""
    if raw is None:
        return None, frozenset()
    place = "experiment"
    part = _part(_Experiment, raw, file, place, problems)
    experiment = None if part is None else _begun(part, file, problems)
    if part is None or experiment is None:
        return None, frozenset()
    for path, value in part.set.items():
        try:
            experiment = with_value(experiment, path, value)
        except ConfigError as error:
            problems += [_at(file, f"{place}.set", sentence) for sentence in error.sentences]
    return experiment, _opened(part, _values(experiment), file, problems)


def _values(experiment: Experiment) -> dict[str, Any]:
    """Return the value of every setting by path; the kind of a task is no setting."""
    flat: dict[str, Any] = {}
    for section, value in experiment.model_dump().items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        flat |= {f"{section}.{name}" if name else section: inner for name, inner in parts}
    flat.pop("task.kind", None)
    return flat


def _begun(part: _Experiment, file: str, problems: list[Problem]) -> Experiment | None:
    """Return the preset, or the defaults of family and task."""
    place = "experiment"
    if part.preset:
        if part.preset in PRESETS and not (part.family or part.task):
            return PRESETS[part.preset].experiment
        known = ", ".join(PRESETS)
        words = N_(
            "there is no preset {name}; use one of {known}.", name=part.preset[:40], known=known
        )
        if part.preset in PRESETS:
            words = N_("give either a preset, or family and task.")
        problems.append(_at(file, f"{place}.preset", words))
        return None
    if part.family not in FAMILIES:
        words = N_(
            "give a preset, or family and task; families: {known}.", known=", ".join(FAMILIES)
        )
        problems.append(_at(file, place, words))
        return None
    if part.task not in TASK_FACTS or part.task not in tasks_for(part.family):
        words = N_("task must be one of {known}.", known=", ".join(tasks_for(part.family)))
        problems.append(_at(file, f"{place}.task", words))
        return None
    return Experiment.parse(default_sections(part.family, part.task))


def _opened(
    part: _Experiment, known: Mapping[str, Any], file: str, problems: list[Problem]
) -> frozenset[str]:
    """Return the open settings: those listed, or all but the locked ones."""
    place = "experiment"
    if (part.open is None) == (part.locked is None):
        words = N_("give either open or locked: a list of settings.")
        problems.append(_at(file, place, words))
        return frozenset()
    named = part.open if part.open is not None else part.locked or []
    kind = "open" if part.open is not None else "locked"
    for path in named:
        if path not in known:
            words = N_("there is no setting {path} here.", path=path[:60])
            problems.append(_at(file, f"{place}.{kind}", words))
        elif kind == "open" and path in ALWAYS_LOCKED:
            words = N_("{path} is locked in every lesson that trains.", path=path)
            problems.append(_at(file, f"{place}.{kind}", words))
    if part.open is None:
        return frozenset(known) - frozenset(named) - frozenset(ALWAYS_LOCKED)
    if "training.optimizer" in part.open and "training.weight_decay" not in part.open:
        words = N_("training.optimizer needs training.weight_decay: it follows the optimiser.")
        problems.append(_at(file, f"{place}.open", words))
    return frozenset(part.open)
