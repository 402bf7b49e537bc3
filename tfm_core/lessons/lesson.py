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

The words stand in ``<language>/<id>.md`` or ``<id>.md`` beside it. A tour is a lesson whose tasks
are stops (``stops.py``): it has ``[over]``, the run that it leads over. Only the app has tours.
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
from tfm_core.inspect.differences import differences, settings
from tfm_core.lessons.checks import CHECKS
from tfm_core.lessons.stops import Over, Stop
from tfm_core.lessons.task import Name, Task, Value, with_value
from tfm_core.lessons.words import LessonWords, parse
from tfm_core.reading import Unreadable, content_of, toml_of
from tfm_core.sentences import N_, StudentError, listed

_OLDER = (
    "adder",
    "captions",
    "chains",
    "draw",
    "encoders",
    "experiments",
    "find-the-bug",
    "gpt",
    "grokking",
    "induction",
    "memorising",
    "sinks",
    "specialise",
    "speed",
    "superposition",
    "tensors",
    "translate",
    "words",
)
PAGES = (
    "attention",
    "before",
    "build",
    "by-hand",
    "challenges",
    "compare",
    "findings",
    "home",
    "knockouts",
    "masks",
    "mistakes",
    "numbers",
    "own-data",
    "parameters",
    "positions",
    "practice",
    "runs",
    "sweeps",
    "train",
    "training-step",
    "try",
    "walk",
    *_OLDER,
)
"""The pages on which a lesson can work; the last ones are older names."""

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


class _AppFile(_File):
    over: Over | None = None


@dataclass(frozen=True)
class Lesson:
    """A lesson. pages: on which one works. experiment: what it trains, None for nothing.

    open: the settings that may be changed, as paths. by_language: the words in each language.
    fingerprint: of both files, 16 hexadecimal digits. is_own: added by a teacher. over: the run
    that a tour leads over, None of any other lesson.
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
    over: Over | None = None

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
        return {path: label for path, (label, *_value) in settings(self.experiment).items()}

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
    settings_text = _content(path)
    by_language: dict[str, tuple[str, bytes]] = {}
    for words in _word_files(path):
        language = ENGLISH if words.parent == path.parent else words.parent.name
        by_language.setdefault(language, (words.name, _content(words)))
    if not by_language:
        raise ConfigError(
            [_at(path.name, "", N_("{md} is missing next to it.", md=f"{path.stem}.md"))]
        )
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
    reader = _Reader(file)
    try:
        values = toml_of(_decoded(file, settings_text).removeprefix("\ufeff"))
    except Unreadable as error:
        raise ConfigError([_at(file, "", N_("{why}.", why=error.sentence))]) from None
    whole = reader.part(_File if is_own else _AppFile, values, "")
    over = getattr(whole, "over", None)
    by_language = reader.words(texts, has_goal=over is None)
    if whole is None or ENGLISH not in by_language or len(by_language) < len(texts):
        raise ConfigError(reader.problems)
    if f"{whole.id}.toml" != file:
        words = N_("the file must be named {name}.toml, after its id.", name=whole.id)
        reader.wrong("id", words)
    for name in whole.pages:
        reader.check_page("pages", name)
    experiment, opened = reader.experiment(whole.experiment)
    tasks = [
        task
        for number, raw in enumerate(whole.tasks, 1)
        if (task := reader.task(raw, number, is_stop=over is not None)) is not None
    ]
    for words_of_one, (name, _text) in zip(by_language.values(), texts.values(), strict=True):
        reader.match(tasks, whole.tasks, words_of_one, name)
    for number, task in enumerate(tasks, 1):
        of_task = by_language[ENGLISH].tasks.get(task.id)
        for sentence in () if of_task is None else task.problems(of_task, experiment):
            reader.wrong(f"tasks[{number}] {task.id}", sentence)
    if reader.problems:
        raise ConfigError(reader.problems)
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
        over,
    )


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
        raise ConfigError([_at(file, "", N_("it isn't UTF-8 text."))]) from None


def _at(file: str, place: str, sentence: str) -> Problem:
    """Return a problem that names file and field."""
    where = f"{file}, {place}" if place else file
    return Problem(where, N_("{where}: {sentence}", where=where, sentence=sentence))


class _Reader:
    """Reads the parts of a lesson's file, and notes what is wrong with them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def wrong(self, place: str, sentence: str, file: str = "") -> None:
        """Note a problem at a place of the file, or of another."""
        self.problems.append(_at(file or self.file, place, sentence))

    def part(self, kind: type[P], values: object, place: str) -> P | None:
        """Return plain values as a part of a lesson, or None where something is wrong with them."""
        try:
            return kind.model_validate_json(json.dumps(values, default=str))
        except ValidationError as error:
            for problem in explain(error, kind):
                self.wrong(".".join(filter(None, (place, problem.field))), problem.sentence)
        return None

    def check_page(self, place: str, name: str) -> None:
        if name not in PAGES:
            self.wrong(place, N_("there is no page {name}.", name=name[:40]))

    def words(
        self, texts: Mapping[str, tuple[str, bytes]], *, has_goal: bool
    ) -> dict[str, LessonWords]:
        """Return the words in each language, without those that are wrong."""
        found = {}
        for language, (name, text) in texts.items():
            try:
                words = parse(_decoded(name, text), name)
                if has_goal and not words.goal:
                    why = N_("{file} needs a goal in the line after its title.", file=name)
                    raise ConfigError([Problem(name, why)])
                found[language] = words
            except ConfigError as error:
                self.problems += error.problems
        if ENGLISH not in texts:
            self.wrong("", N_("its English text is missing."))
        return found

    def task(self, raw: Mapping[str, Any], number: int, *, is_stop: bool) -> Task | None:
        place, name = f"tasks[{number}]", raw.get("check")
        kind = Stop if is_stop else CHECKS.get(name) if isinstance(name, str) else None
        if kind is None:
            known = ", ".join(CHECKS)
            words = N_("check is missing; choose from {known}.", known=known)
            if name is not None:
                shown = repr(name)[:60]
                words = N_("check is {name}; choose from {known}.", name=shown, known=known)
            self.wrong(place, words)
            return None
        task = self.part(kind, dict(raw), place)
        if task is not None and task.page:
            self.check_page(f"{place}.page", task.page)
        return task

    def match(
        self, tasks: list[Task], raw: list[dict[str, Any]], words: LessonWords, name: str
    ) -> None:
        """Note each task without words, or with the id of another, and vice versa."""
        ids = [task.id for task in tasks]
        for number, one in enumerate(ids, 1):
            if one in ids[: number - 1]:
                self.wrong(f"tasks[{number}]", N_("the id {name} is used twice.", name=one))
        for one in dict.fromkeys(ids):
            if one not in words.tasks:
                self.wrong("", N_("the section “## {task}” is missing.", task=one), name)
        known = {one.get("id") for one in raw}
        for one in words.tasks:
            if one not in known:
                why = N_("{file} has no task with this id.", file=self.file)
                self.wrong(f"## {one}", why, name)

    def experiment(self, raw: object) -> tuple[Experiment | None, frozenset[str]]:
        """Return what a lesson trains, and the settings that are open."""
        place = "experiment"
        part = None if raw is None else self.part(_Experiment, raw, place)
        experiment = None if part is None else self._begun(part, place)
        if part is None or experiment is None:
            return None, frozenset()
        for path, value in part.set.items():
            try:
                experiment = with_value(experiment, path, value)
            except ConfigError as error:
                for sentence in error.sentences:
                    self.wrong(f"{place}.set", sentence)
        return experiment, self._opened(part, _values(experiment), place)

    def _begun(self, part: _Experiment, place: str) -> Experiment | None:
        """Return the preset, or the defaults of family and task."""
        if part.preset:
            if part.preset not in PRESETS:
                shown, known = part.preset[:40], ", ".join(PRESETS)
                words = N_(
                    "there is no preset {name}; use one of {known}.", name=shown, known=known
                )
            elif part.family or part.task:
                words = N_("give either a preset, or family and task.")
            else:
                return PRESETS[part.preset].experiment
            self.wrong(f"{place}.preset", words)
            return None
        if part.family not in FAMILIES:
            known = ", ".join(FAMILIES)
            words = N_("give a preset, or family and task; families: {known}.", known=known)
            self.wrong(place, words)
            return None
        if part.task not in TASK_FACTS or part.task not in tasks_for(part.family):
            words = N_("task must be one of {known}.", known=", ".join(tasks_for(part.family)))
            self.wrong(f"{place}.task", words)
            return None
        return Experiment.parse(default_sections(part.family, part.task))

    def _opened(self, part: _Experiment, known: Mapping[str, Any], place: str) -> frozenset[str]:
        """Return the open settings: those listed, or all but the locked ones."""
        if (part.open is None) == (part.locked is None):
            self.wrong(place, N_("give either open or locked: a list of settings."))
            return frozenset()
        named = part.open if part.open is not None else part.locked or []
        kind = "open" if part.open is not None else "locked"
        for path in named:
            if path not in known:
                words = N_("there is no setting {path} here.", path=path[:60])
                self.wrong(f"{place}.{kind}", words)
            elif kind == "open" and path in ALWAYS_LOCKED:
                words = N_("{path} is locked in every lesson that trains.", path=path)
                self.wrong(f"{place}.{kind}", words)
        if part.open is None:
            return frozenset(known) - frozenset(named) - frozenset(ALWAYS_LOCKED)
        if "training.optimizer" in part.open and "training.weight_decay" not in part.open:
            words = N_("training.optimizer needs training.weight_decay: it follows the optimiser.")
            self.wrong(f"{place}.open", words)
        return frozenset(part.open)


def _values(experiment: Experiment) -> dict[str, Any]:
    """Return the value of every setting by path; the kind of a task is no setting."""
    flat: dict[str, Any] = {}
    for section, value in experiment.model_dump().items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        flat |= {f"{section}.{name}" if name else section: inner for name, inner in parts}
    flat.pop("task.kind", None)
    return flat
