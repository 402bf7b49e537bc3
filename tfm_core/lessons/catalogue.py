"""All lessons and tours of a server: those that come with the app, and a teacher's folder.

TFM_LESSONS_DIR names that folder; a lesson there takes the place of one with its id. A file that is
no lesson is left out, and the sentences on it are kept for who looks after the server.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tfm_core import settings
from tfm_core.choices.config import ConfigError
from tfm_core.lessons.lesson import Lesson, read
from tfm_core.runs.run import LESSON_ID
from tfm_core.sentences import N_, StudentError

CONTENT = Path(__file__).parent / "content"
MAX_OWN = 100
"""Lesson files of a teacher's folder that are read."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The lessons and the tours by id, in their order, and what is wrong with the other files."""

    lessons: Mapping[str, Lesson]
    tours: Mapping[str, Lesson]
    problems: tuple[str, ...] = ()


def catalogue() -> Catalogue:
    """Return the lessons of this server; files are read again when they change. Never raises."""
    own = settings.read().lessons_dir
    return _catalogue(None if own is None else str(own), _state(own))


def lesson(name: str) -> Lesson:
    """Return the lesson or the tour with an id. Raises StudentError, in a sentence."""
    known = catalogue()
    found = known.lessons.get(name) or known.tours.get(name)
    if found is None:
        shown = name[:40] if LESSON_ID.fullmatch(name[:40]) else "?"
        raise StudentError("There is no lesson “{name}”.", name=shown)
    return found


def _state(folder: Path | None) -> tuple[tuple[str, int, int], ...]:
    """Return what tells whether a folder's lessons changed."""
    if folder is None:
        return ()
    found = []
    for path in _files(folder):
        try:
            facts = path.stat()
        except OSError:
            continue
        found.append((str(path), facts.st_mtime_ns, facts.st_size))
    return tuple(found)


def _files(folder: Path) -> list[Path]:
    try:
        names = [path for pattern in ("*.toml", "*.md", "*/*.md") for path in folder.glob(pattern)]
    except OSError:
        return []
    return sorted(names)[: 4 * MAX_OWN]


@lru_cache(maxsize=8)
def _catalogue(own: str | None, _state: tuple[tuple[str, int, int], ...]) -> Catalogue:
    found: dict[str, Lesson] = {}
    problems: list[str] = []
    for folder in filter(None, (str(CONTENT), own)):
        is_own = folder == own
        if not os.path.isdir(folder):
            problems.append(f"TFM_LESSONS_DIR: {folder} is not a folder.")
            continue
        paths = sorted(Path(folder).glob("*.toml"))
        if len(paths) > MAX_OWN:
            n = len(paths) - MAX_OWN
            problems.append(
                N_("The limit is {most} lessons; {n} more were skipped.", most=MAX_OWN, n=n)
            )
        for path in paths[:MAX_OWN]:
            try:
                one = read(path, is_own=is_own)
            except ConfigError as error:
                problems += error.sentences
            except Exception:  # else every page would read this file again, and fail
                logger.exception("A lesson cannot be read: %s", path)
                problems.append(N_("Can't read {file}; see the server's log.", file=path.name))
            else:
                found[one.id] = one
    ordered = sorted(found.values(), key=lambda one: (one.order, one.id))
    lessons = {one.id: one for one in ordered if one.over is None}
    tours = {one.id: one for one in ordered if one.over is not None}
    return Catalogue(lessons, tours, tuple(problems))
