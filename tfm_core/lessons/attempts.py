"""What participants did in a lesson or a tour: one small file each, beside the runs.

``<runs>/.lessons/<lesson>/<participant>.json``. A participant is the hash that owns their runs (see
``runs.auth``); a name is there only where they gave one. Writers take turns with a lock, files are
replaced whole, and one that can't be read is skipped with a reason.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, StrictBool

from tfm_core import settings
from tfm_core.disk import remove
from tfm_core.lessons.task import MAX_ANSWER, Verdict
from tfm_core.reading import Unreadable, object_of
from tfm_core.runs.disk.atomic import CachedReader, write_json
from tfm_core.runs.disk.failures import os_errors_as_sentences
from tfm_core.runs.disk.locks import limit_lock
from tfm_core.runs.run import ID, LESSON_ID, Run
from tfm_core.runs.store import RunNotFound, RunStore
from tfm_core.sentences import N_, StudentError
from tfm_core.stored import Moment, Stored, line, matching, number, text, unstored, whole

FOLDER = ".lessons"
MAX_PARTICIPANTS = 2000
"""Files of one lesson."""
KEPT_SECONDS = 60 * 24 * 3600
"""How long one that nobody changes is kept for certain; later it makes room for others."""
MAX_RUNS, MAX_NAME, MAX_TRIES = 60, 60, 9999
_MAX_BYTES = 65_536
_MAX_ANSWERS, _MAX_FIGURES = 20, 12

_Lesson = Annotated[str, matching(LESSON_ID)]
_RunId = Annotated[str, matching(ID)]
_Figures = Annotated[
    dict[Annotated[str, line(60)], Annotated[float, number(-1e15, 1e15)]],
    Field(max_length=_MAX_FIGURES),
]


@dataclass(frozen=True, slots=True)
class Answer:
    """The newest answer to a task, or the right one, which stays.

    answer: as ``Task.answer_of`` returns it. tries: answers until it was right. at: when, ISO 8601.
    run: the id of the run that shows it, or "".
    """

    answer: Annotated[str, text(MAX_ANSWER)]
    is_right: StrictBool
    tries: Annotated[int, whole(1, MAX_TRIES)]
    at: Moment
    run: Annotated[str, matching(re.compile(rf"|{ID.pattern}"))] = ""
    figures: _Figures = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One participant in one lesson.

    browser: the hash that owns their runs. name: as they gave it, None for none. answers: by task.
    runs: ids of the runs that they started in the lesson, the oldest first; of a tour, the run that
    it leads over. task: on which they are, "" before the first and after the end.
    """

    lesson: Annotated[str, unstored("")]
    browser: Annotated[str, unstored("")]
    name: Annotated[str, line(MAX_NAME)] | None = None
    answers: Annotated[dict[_Lesson, Answer], Field(max_length=_MAX_ANSWERS)] = field(
        default_factory=dict
    )
    runs: Annotated[tuple[_RunId, ...], Field(max_length=MAX_RUNS)] = ()
    task: Annotated[str, matching(re.compile(rf"|{LESSON_ID.pattern}"))] = ""

    def is_solved(self, task: str) -> bool:
        """Return whether a task was answered right."""
        return task in self.answers and self.answers[task].is_right

    def trained(self, store: RunStore) -> list[Run]:
        """Return their runs, the newest first, without those that were deleted or are damaged."""
        found = []
        for run_id in reversed(self.runs):
            with contextlib.suppress(RunNotFound):
                found.append(store.get(run_id))
        return [run for run in found if run.problem is None]

    def answered(self, task: str, answer: str, verdict: Verdict) -> Attempt:
        """Return it with an answer and what it was worth; a right one stays."""
        before = self.answers.get(task)
        if before is not None and before.is_right:
            return self
        tries = min(MAX_TRIES, 1 + (0 if before is None else before.tries))
        at, figures = datetime.now(UTC).isoformat(timespec="seconds"), dict(verdict.figures)
        new = Answer(answer[:MAX_ANSWER], verdict.is_right, tries, at, verdict.run, figures)
        return dataclasses.replace(self, answers={**self.answers, task: new})

    def with_run(self, run_id: str) -> Attempt:
        """Return it with a run that was started in the lesson; the oldest are forgotten."""
        return dataclasses.replace(self, runs=(*self.runs, run_id)[-MAX_RUNS:])

    def on_task(self, task: str, run_id: str = "") -> Attempt:
        """Return it on a task. run_id: of a tour; over another run nothing is answered yet."""
        if run_id and self.runs != (run_id,):
            return dataclasses.replace(self, task=task, runs=(run_id,), answers={})
        return dataclasses.replace(self, task=task)


def attempts(lesson: str, *, root: Path | None = None) -> list[Attempt]:
    """Return everybody's attempt at a lesson, by participant. Never raises."""
    try:
        folder = _folder(lesson, root)
    except StudentError:
        return []
    found = []
    for name in _names(folder):
        with contextlib.suppress(FileNotFoundError, Unreadable):  # reset just now, or damaged
            found.append(_of(folder / name))
    return found


def attempt(lesson: str, browser: str, *, root: Path | None = None) -> Attempt:
    """Return one participant's attempt; an empty one before the first answer. Never raises."""
    with contextlib.suppress(FileNotFoundError, Unreadable, StudentError):
        return _of(_file(lesson, browser, root))
    return Attempt(lesson, browser)


def newest(lessons: Iterable[str], browser: str, *, root: Path | None = None) -> Attempt | None:
    """Return the attempt that a participant changed last, of those on a task. Never raises."""
    found = []
    for lesson in lessons:
        one = attempt(lesson, browser, root=root)
        if one.task:
            with contextlib.suppress(OSError):
                found.append((_file(lesson, browser, root).stat().st_mtime_ns, one))
    return max(found, key=lambda pair: pair[0])[1] if found else None


@os_errors_as_sentences()
def change(
    lesson: str, browser: str, new: Callable[[Attempt], Attempt], *, root: Path | None = None
) -> Attempt:
    """Replace one participant's attempt by a new one; return it. Raises StudentError."""
    path = _file(lesson, browser, root)
    with limit_lock(_root(root), "lessons"):
        try:
            old = _of(path)
        except FileNotFoundError:
            _make_room(path.parent)
            old = Attempt(lesson, browser)
        except Unreadable:  # damaged: what follows replaces it
            old = Attempt(lesson, browser)
        changed = new(old)
        if changed != old:
            values = _STORED.plain(changed)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, {name: values[name] for name in ("name", "answers", "runs", "task")})
    return changed


def give_name(lesson: str, browser: str, name: str, *, root: Path | None = None) -> Attempt:
    """Note a participant's name; "" removes it. Raises StudentError."""
    words = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    if len(words) > MAX_NAME:
        raise StudentError("The limit for a name is {most} characters.", most=MAX_NAME)
    named = words or None
    return change(lesson, browser, lambda old: dataclasses.replace(old, name=named), root=root)


@os_errors_as_sentences()
def reset(lesson: str, *, root: Path | None = None) -> int:
    """Forget everybody's attempt at a lesson; return how many. Runs stay. Raises StudentError."""
    folder = _folder(lesson, root)
    with limit_lock(_root(root), "lessons"):
        n = len(_names(folder))
        shutil.rmtree(folder, ignore_errors=True)
    return n


def _make_room(folder: Path) -> None:
    """Remove forgotten attempts where there are too many. Raises StudentError if none is."""
    names = _names(folder)
    if len(names) < MAX_PARTICIPANTS:
        return
    since = time.time() - KEPT_SECONDS
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            if (folder / name).lstat().st_mtime < since:
                remove(folder / name)
    if len(_names(folder)) >= MAX_PARTICIPANTS:
        raise StudentError(
            "This lesson has reached its limit of {n} participants.", n=MAX_PARTICIPANTS
        )


def _of(path: Path) -> Attempt:
    return _READER.of(path.parent, path.name)


def _read(path: Path) -> Attempt:
    if _FILE.fullmatch(path.name) is None:
        raise Unreadable(N_("{name} belongs to no participant", name=path.name))
    read = _STORED.read({"lesson": "", "browser": "", **object_of(path, most=_MAX_BYTES)})
    return dataclasses.replace(read, lesson=path.parent.name, browser=path.stem)


def _names(folder: Path) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(".json") and name[0] != ".")


def _file(lesson: str, browser: str, root: Path | None) -> Path:
    if _FILE.fullmatch(f"{browser}.json") is None:
        raise StudentError("This isn't a participant of a lesson.")
    return _folder(lesson, root) / f"{browser}.json"


def _folder(lesson: str, root: Path | None) -> Path:
    if LESSON_ID.fullmatch(lesson) is None:
        raise StudentError("This isn't a lesson id.")
    return _root(root) / FOLDER / lesson


def _root(root: Path | None) -> Path:
    return settings.read().runs_dir if root is None else root


_FILE = re.compile(r"[0-9a-f]{64}\.json")
_STORED = Stored(Attempt, "attempt")
_READER: CachedReader[Attempt] = CachedReader(_read)
