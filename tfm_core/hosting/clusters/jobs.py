"""Jobs of a cluster: each run is the command ``python -m tfm_core resume ID --job NAME`` there.

All machines see the same folder of runs. In the order of the queue's table, with a kill, a full
disk or a lost cluster between two steps:

    3. ``job.json`` "handed"   no such job: "again" at the next look, and it is resubmitted
    4. the job submitted       it waits, with its ticket, until the cluster starts it
    5. the job's claim         job and claim end: it waits; see step 7
    6. status "starting"       written by the job, which then removes the ticket
    7. the job ends            "finished", "stopped" or "failed", as its status says

A job that dies after its start leaves its run interrupted: its heartbeat stops. Such a run is
queued again and resumes from its last checkpoint in a job of another name. So does a run whose job
was ended by its machine, such as at its time limit. A job that dies before its start is lost with
its cluster (and resubmitted), or its command failed (and so does the run, with the job's last
line). A run without progress in TRIES jobs is left for a person.

A run's status says whether it trains; the cluster is never asked. So an unreachable head affects no
training run, and everything stays readable.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TypeVar

import tfm_core
from tfm_core.runs import settings
from tfm_core.runs.backends import job
from tfm_core.runs.backends.backend import (
    Backend,
    Cluster,
    JobRefused,
    NameTaken,
    Order,
    Unavailable,
    waits,
)
from tfm_core.runs.backends.job import LABELS, Job
from tfm_core.runs.process.requests import ASKED_TO_END
from tfm_core.runs.queue import claim, tickets
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status, write_status
from tfm_core.sentences import N_

PLACES = 8
"""Submitted runs at a time, waiting in the cluster or training, by default."""

LOOK_SECONDS = 5.0
"""How often to ask what became of the jobs that have not begun, and look for those that ended."""

DOWN_SECONDS = 5.0
"""How long a cluster that did not answer is left alone."""

TRIES = 3
"""Jobs in a row that may end without having brought their run a checkpoint further."""

_SECRET = {
    "TFM_HOST_KEY",
    "TFM_LESSONS_KEY",
    "TFM_BACKEND",
    "TFM_RAY_ADDRESS",
    "TFM_SLURM_OPTIONS",
}
Answer = TypeVar("Answer")
logger = logging.getLogger(__name__)


class Jobs(Backend):
    """The back end that hands each run to a cluster as a job."""

    places = PLACES

    def __init__(self, root: Path, limits: Limits, cluster: Cluster) -> None:
        """Prepare; the cluster is first asked when a run is to be started."""
        self.cluster, self.name = cluster, cluster.name
        self._root, self._limits = root, limits
        self._look_at, self._down = 0.0, (0.0, "")

    def start(self, run: Run) -> bool:
        """Hand a waiting run over. Raises Unavailable, RunHeld and OSError."""
        self._check_up()
        with claim.moment(run.folder):
            if not waits(run):
                return False
            if run.status.state != "queued":  # its server was killed as it gave it to a worker
                write_status(run.folder, dataclasses.replace(run.status, state="queued"))
            given = self._note(run)
        try:
            while True:
                order = self._order(run, given)
                with contextlib.suppress(NameTaken):
                    self._asked(partial(self.cluster.submit, order))
                    return True
                given = self._note(run)
        except Unavailable:
            job.write(run.folder, job.unsubmitted(given))
            raise

    def has(self, run: Run) -> bool:
        """Return whether a job of this cluster has a run that has not begun."""
        known = job.read(run.folder)
        return known is not None and (known.backend, known.phase) == (self.name, "handed")

    def look_after(self, runs: Callable[[], Iterable[Run]]) -> None:
        """Check all jobs; those that cannot be checked now are checked later."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_SECONDS
        for run in runs():
            known = job.read(run.folder)
            if known is None or known.backend != self.name or known.phase == "over":
                continue
            try:
                self._look_after(run, known)
            except Unavailable as error:
                if run.status.state == "queued":
                    tickets.note_start_error(run.folder, error.sentence, seconds=0)
            except (claim.RunHeld, OSError) as error:
                logger.info("The job of run %s waits to be looked after: %s", run.id, error)

    def get_ready(self) -> None:
        """Do nothing: a cluster gets itself ready."""

    def n_warm(self) -> int:
        """Return none: no worker waits on a cluster."""
        return 0

    def close(self) -> None:
        """Leave all jobs as they are."""

    def _look_after(self, run: Run, known: Job) -> None:
        status = run.status
        if status.state == "queued":
            if known.phase == "handed":
                self._look_at_waiting(run, known)
        elif status.state == "interrupted" or status.reason == ASKED_TO_END:
            self._again(run, known, status)
        elif not status.is_alive:  # it ended with a last word, or was stopped as it waited
            if status.state == "stopped" and known.phase == "handed":
                self._asked(lambda: self.cluster.cancel(known.name))
            job.write(run.folder, dataclasses.replace(known, phase="over"))

    def _look_at_waiting(self, run: Run, known: Job) -> None:
        """Check a job that has not started."""
        state = self._asked(lambda: self.cluster.state(known.name))
        tickets.forget_start_error(run.folder)
        if state == "there" or run.status.state != "queued":  # it began meanwhile
            return
        if state == "unplaced":
            self._again(run, dataclasses.replace(known, tries=0), run.status)
        elif state == "lost":
            self._again(run, known, run.status)
        else:
            last = self._asked(lambda: self.cluster.last_words(known.name, run.folder))
            self._fail(
                run,
                known,
                N_(
                    "The {backend} job {name} ended before training started: {last}",
                    name=known.name,
                    backend=LABELS[self.name],
                    last=last,
                ),
            )

    def _again(self, run: Run, known: Job, was: Status) -> None:
        """Resume a run in another job, unless it makes no progress. Raises RunHeld and OSError."""
        if known.tries >= TRIES and (run.checkpoint_step or 0) <= known.step:
            if was.state == "queued":
                sentence = N_(
                    "{backend} lost {n} jobs of this run. Resume to try again.",
                    backend=LABELS[self.name],
                    n=known.tries,
                )
                self._fail(run, known, sentence)
            else:
                job.write(run.folder, dataclasses.replace(known, phase="over"))
            return
        with claim.moment(run.folder):
            now = job.read(run.folder)
            is_same = now is not None and (now.name, now.phase) == (known.name, known.phase)
            if run.status.state != was.state or not is_same:
                return  # another server was quicker
            job.write(run.folder, dataclasses.replace(known, phase="again"))
            if was.state != "queued":
                queued = dataclasses.replace(run.status, state="queued", reason=None)
                write_status(run.folder, queued)
        tickets.add(self._root, run.id)

    def _fail(self, run: Run, known: Job, reason: str) -> None:
        with claim.moment(run.folder):
            if run.status.state != "queued":
                return
            write_status(run.folder, dataclasses.replace(run.status, state="failed", reason=reason))
        job.write(run.folder, dataclasses.replace(known, phase="over"))
        tickets.remove(self._root, run.id)

    def _note(self, run: Run) -> Job:
        given = job.following(run.folder, self.name, step=run.checkpoint_step or 0)
        job.write(run.folder, given)
        return given

    def _order(self, run: Run, given: Job) -> Order:
        limits = {"--max-seconds": self._limits.max_seconds, "--max-pause": self._limits.max_pause}
        bounds = [f"{name}={value:g}" for name, value in limits.items() if value is not None]
        python = settings.read().cluster_python or (sys.executable,)
        return Order(
            given.name,
            (*python, "-m", "tfm_core", "resume", "--job", given.name, *bounds, "--", run.id),
            _environment(self._root),
            cpus=run.meta.threads,
            gpus=int(run.meta.device.startswith("cuda")),
            root=self._root,
            folder=run.folder,
        )

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """Ask the cluster; one that did not answer is left alone for a while."""
        self._check_up()
        try:
            return ask()
        except JobRefused:
            raise
        except Unavailable as error:
            if self._down[1] != error.sentence:
                logger.warning("%s", error)
            self._down = (time.monotonic() + DOWN_SECONDS, error.sentence)
            raise

    def _check_up(self) -> None:
        until, sentence = self._down
        if time.monotonic() < until:
            raise Unavailable(sentence)


def _environment(root: Path) -> dict[str, str]:
    """Return what a job must know: the folders, the host's limits, and one thread a product."""
    code = str(Path(tfm_core.__file__).resolve().parent.parent)
    said = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("TFM_") and name not in _SECRET
    }
    data = Path(said.get("TFM_DATA_DIR") or "data").absolute()
    path = os.pathsep.join([code, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        **said,
        "TFM_RUNS_DIR": str(root),
        "TFM_DATA_DIR": str(data),
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
