"""The note of a run's job: ``job.json`` in its folder, written before the job is submitted.

A job is named after its run: the id, then ``ID-2``, because Ray accepts no name twice. Only the job
in the note may start, and only while its run waits. So a job that comes late, twice, or to a run
that was stopped meanwhile ends without changing anything.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tfm_core.reading import Unreadable, object_of
from tfm_core.runs.disk.atomic import CachedReader, write_json
from tfm_core.runs.settings import BackendName
from tfm_core.runs.status import Status
from tfm_core.sentences import N_, Sentence, StudentError
from tfm_core.stored import Step, Stored, matching, whole

FILE = "job.json"
Phase = Literal["handed", "again", "over"]
"""handed: submitted, or about to be; again: to be resubmitted; over: nothing to do."""

LABELS: dict[BackendName, str] = {"ray": "Ray", "slurm": "Slurm"}
_MAX_BYTES = 4096
_Count = Annotated[int, whole(0, 10**9)]


class NotItsTurn(StudentError):
    """A job came to a run that does not wait for it."""


@dataclass(frozen=True, slots=True)
class Job:
    """The last job of a run. attempt: its number, from 1; name: "" where no job trains it.

    step: of the checkpoint that it goes on from. tries: how many jobs in a row went on from it.
    """

    backend: BackendName
    name: Annotated[str, matching(re.compile(r"[A-Za-z0-9_-]{0,80}"))]
    attempt: _Count = 1
    phase: Phase = "handed"
    step: Step = 0
    tries: _Count = 1


def read(folder: Path) -> Job | None:
    """Return the note of a run's job, or None without a readable one. Never raises."""
    try:
        return _JOBS.of(folder, FILE)
    except (FileNotFoundError, Unreadable):
        return None


def write(folder: Path, job: Job) -> None:
    """Replace the note. Raises OSError."""
    write_json(folder / FILE, dataclasses.asdict(job), lasting=True)


def following(folder: Path, backend: BackendName, *, step: int) -> Job:
    """Return the next job of a run, which resumes from a step; it is not written yet."""
    last = read(folder) or Job(backend, "", 0, step=step, tries=0)
    attempt = last.attempt + 1
    name = folder.name if attempt == 1 else f"{folder.name}-{attempt}"
    return Job(backend, name, attempt, step=step, tries=last.tries + 1 if step <= last.step else 1)


def unsubmitted(job: Job) -> Job:
    """Return the note of a job that could not be submitted: the next may have its name."""
    return dataclasses.replace(job, phase="again", attempt=job.attempt - 1, tries=job.tries - 1)


def renew(folder: Path) -> None:
    """Note that a person resumes the run: it is tried as often as a new one. Raises OSError."""
    if (job := read(folder)) is not None:
        write(folder, dataclasses.replace(job, phase="again", tries=0))


def leave(folder: Path) -> None:
    """Note that a process which is no job trains the run from here on. Raises OSError."""
    if (job := read(folder)) is not None and job.name:
        write(folder, dataclasses.replace(job, name="", phase="over"))


def check(folder: Path, status: Status, name: str) -> None:
    """Raise NotItsTurn, in a sentence, where a job may not begin. Its process holds the claim."""
    job = read(folder)
    if job is None or (job.name, job.phase) != (name, "handed"):
        now = N_("none") if job is None else (job.name or N_("none"))
        raise NotItsTurn(
            "The run {id} does not wait for the job {name} (its job: {now}).",
            id=folder.name,
            name=name,
            now=now,
        )
    if status.state != "queued":
        raise NotItsTurn(
            "The run {id} is {state}, so the job {name} has nothing to do.",
            id=folder.name,
            state=status.state,
            name=name,
        )


def words(folder: Path) -> Sentence | None:
    """Return that a waiting run's job was handed over, in a sentence, or None."""
    job = read(folder)
    if job is None or job.phase != "handed":
        return None
    return N_(
        "Submitted to {backend} as job {name}. It starts once the cluster has room.",
        backend=LABELS.get(job.backend, job.backend),
        name=job.name,
    )


def trained_by(folder: Path, status: Status) -> Sentence | None:
    """Return which job trains a run, or did so last, and where, in words; None where none does."""
    job = read(folder)
    if job is None or not job.name or status.host is None:
        return None
    return N_(
        "{backend} job {name} on {host}",
        backend=LABELS.get(job.backend, job.backend),
        name=job.name,
        host=status.host,
    )


_STORED = Stored(Job, FILE)
_JOBS = CachedReader(lambda path: _STORED.read(object_of(path, most=_MAX_BYTES)))
