"""Results as signed lines of text, which a pupil hands in and a teacher checks.

A line is ``tfm1.PAYLOAD.SIGNATURE``: base64url of JSON, and its HMAC-SHA256 with a key that never
leaves the server. Only the server that signed a line can tell whether somebody changed it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from tfm_core import settings
from tfm_core.choices.config import to_json
from tfm_core.lessons.attempts import FOLDER, Attempt
from tfm_core.lessons.lesson import Lesson
from tfm_core.reading import Unreadable, content_of, json_of
from tfm_core.runs.disk.failures import os_errors_as_sentences
from tfm_core.runs.disk.locks import limit_lock
from tfm_core.runs.store import RunNotFound, RunStore
from tfm_core.sentences import N_, StudentError

KEY_FILE = ".key"  # no id of a lesson begins with a dot
VERSION = "tfm1"
MAX_LINE = 20_000
_LINE = re.compile(rf"{VERSION}\.([A-Za-z0-9_-]{{20,{MAX_LINE}}})\.([0-9a-f]{{64}})", re.ASCII)
_START = re.compile(rf"{VERSION}\.", re.ASCII | re.IGNORECASE)
_WRAPPED = re.compile(r"=\r?\n|[\s>\u200b-\u200d\u2060\ufeff]")
"""What mail programs put into a long line."""
_PARTICIPANT = 12
"""Digits of a participant's hash in a result."""

Standing = Literal["good", "forged", "damaged", "other server", "duplicate"]


@dataclass(frozen=True, slots=True)
class Checked:
    """A result in a file, its line, and what it is worth. why: in a sentence, "" of a good one.

    values: what the line says, see ``line``; {} of one that cannot be read.
    """

    file: str
    number: int
    standing: Standing
    why: str
    values: dict[str, Any]

    @property
    def n_solved(self) -> int:
        """How many tasks were solved."""
        return sum(bool(answer.get("right")) for answer in self.values.get("answers", {}).values())

    @property
    def n_tasks(self) -> int:
        """How many tasks the lesson has."""
        return int(self.values.get("tasks", 0))


@os_errors_as_sentences()
def server_key(root: Path | None = None) -> bytes:
    """Return the key that signs, made once and readable by its owner alone.

    Raises StudentError where it cannot be kept.
    """
    root = settings.read().runs_dir if root is None else root
    path = root / FOLDER / KEY_FILE
    with limit_lock(root, "lessons"):
        try:
            key = content_of(path, most=1024)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            key = secrets.token_hex(32).encode()
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                os.write(file, key)
                os.fsync(file)
            finally:
                os.close(file)
        except Unreadable as error:
            raise StudentError("The key for results: {why}.", why=error.sentence) from None
    if len(key) < 32:
        raise StudentError("The key for results, {file}, is damaged.", file=str(path))
    return key


def server_mark(key: bytes) -> str:
    """Return a short name of the server that a key belongs to, which does not tell the key."""
    return hashlib.sha256(b"lessons " + key).hexdigest()[:8]


def line(lesson: Lesson, attempt: Attempt, *, store: RunStore, key: bytes) -> str:
    """Return the signed line of a participant's attempt at a lesson; the same as long as it is."""
    times = [answer.at for answer in attempt.answers.values()]
    answers = {
        task.id: {
            "right": answer.is_right,
            "tries": answer.tries,
            "answer": answer.answer,
            "at": answer.at,
            "figures": dict(answer.figures),
            **_run(answer.run, store),
        }
        for task in lesson.tasks
        if (answer := attempt.answers.get(task.id)) is not None
    }
    values = {
        "server": server_mark(key),
        "lesson": lesson.id,
        "title": str(lesson.words().title),
        "version": lesson.fingerprint,
        "participant": attempt.browser[:_PARTICIPANT],
        "name": attempt.name,
        "at": max(times) if times else datetime.now(UTC).isoformat(timespec="seconds"),
        "tasks": len(lesson.tasks),
        "answers": answers,
    }
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    payload = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return f"{VERSION}.{payload}.{_signature(payload, key)}"


def _run(run_id: str, store: RunStore) -> dict[str, str]:
    """Return a run and the hash of its configuration."""
    if not run_id:
        return {}
    try:
        run = store.get(run_id)
        text = to_json(run.experiment)
    except (RunNotFound, StudentError):
        return {"run": run_id}
    return {"run": run_id, "configuration": hashlib.sha256(text.encode()).hexdigest()[:16]}


def check(texts: Iterable[tuple[str, str]], key: bytes) -> list[Checked]:
    """Return what each result is worth, in order; of several of one participant the best counts.

    texts: name and text of each file. A result may be wrapped, as mail programs do.
    """
    checked: list[Checked] = []
    for file, text in texts:
        starts = [one.start() for one in _START.finditer(text)]
        number, before = 1, 0
        for start, end in pairwise([*starts, len(text)]):
            number, before = number + text.count("\n", before, start), start
            found = _LINE.match(_WRAPPED.sub("", text[start : min(end, start + 4 * MAX_LINE)]))
            checked.append(_checked(file, number, found, key))
    good: dict[tuple[str, str], list[int]] = {}
    for at, one in enumerate(checked):
        if one.standing == "good":
            person = str(one.values.get("lesson")), str(one.values.get("participant"))
            good.setdefault(person, []).append(at)
    for places in good.values():
        worth = {at: (checked[at].n_solved, str(checked[at].values.get("at"))) for at in places}
        best = max(places, key=lambda at: worth[at])
        place = f"{checked[best].file}:{checked[best].number}"
        why = N_("The same participant has an equal or better result at {place}.", place=place)
        for at in places:
            if at != best:
                checked[at] = replace(checked[at], standing="duplicate", why=why)
    return checked


def _checked(file: str, number: int, found: re.Match[str] | None, key: bytes) -> Checked:
    if found is None:
        why = N_("This result is incomplete: a character is missing or changed.")
        return Checked(file, number, "damaged", why, {})
    payload, signature = found.groups()
    values = _decoded(payload)
    if values is None:
        return Checked(file, number, "forged", N_("It can't be read."), {})
    if values.get("server") != server_mark(key):
        return Checked(file, number, "other server", N_("Another server signed it."), values)
    if not hmac.compare_digest(signature, _signature(payload, key)):
        return Checked(file, number, "forged", N_("Its signature is wrong."), values)
    return Checked(file, number, "good", "", values)


def _signature(payload: str, key: bytes) -> str:
    return hmac.new(key, f"{VERSION}.{payload}".encode(), "sha256").hexdigest()


def _decoded(payload: str) -> dict[str, Any] | None:
    """Return what a payload says, None where it says nothing of this form."""
    try:
        values: dict[str, Any] = json_of(
            base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        )
    except ValueError:
        return None
    answers = values.get("answers") if isinstance(values, dict) else None
    if not isinstance(answers, dict) or not all(isinstance(one, dict) for one in answers.values()):
        return None
    if not isinstance(values.get("tasks"), int) or not isinstance(values.get("lesson"), str):
        return None
    return values
