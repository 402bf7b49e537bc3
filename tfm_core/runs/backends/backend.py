"""What the queue asks of a back end, and a back end of a cluster.

The queue decides which waiting run is next and whether there is a place; the back end starts it.
The process that trains a run holds its claim and communicates only through the run's folder, so
pause, step, stop and snapshots work the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tfm_core.runs.disk.atomic import read_json
from tfm_core.runs.run import Run
from tfm_core.runs.settings import BackendName
from tfm_core.sentences import StudentError


class Unavailable(StudentError):
    """A back end cannot take a run now; ``sentence`` says why. Runs keep waiting."""


class JobRefused(Unavailable):
    """A cluster answers, and does not take this run: the next in the line may have its turn."""


class Backend(Protocol):
    """Trains the runs whose turn it is. Only the queue's thread calls it."""

    name: BackendName
    places: int
    """How many runs it trains at once where the host doesn't say."""

    def start(self, run: Run) -> bool:
        """Start a waiting run; return whether it was handed over.

        False: it waits no more. Raises Unavailable, claim.RunHeld and OSError; then it still waits.
        """

    def has(self, run: Run) -> bool:
        """Return whether a waiting run was handed over already and has not begun yet."""

    def look_after(self, runs: Callable[[], Iterable[Run]]) -> None:
        """Check the runs that were handed over; no other server does so at the same time.

        runs: gives all runs of the folder.
        """

    def get_ready(self) -> None:
        """Get ready for more runs. Raises OSError."""

    def n_warm(self) -> int:
        """Return how many workers wait for a run."""

    def close(self) -> None:
        """End idle workers; training runs continue."""


JobState = Literal["there", "unplaced", "over", "lost"]
"""unplaced: the cluster gave it up for lack of resources; lost: the cluster does not know it."""


class NameTaken(Exception):
    """The cluster had a job of this name before."""


@dataclass(frozen=True, slots=True)
class Order:
    """A job to submit. environment: what it needs beside the cluster's own."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    cpus: int
    gpus: int
    root: Path
    folder: Path


class Cluster(Protocol):
    """Runs commands as jobs. Every call raises Unavailable, in a sentence, where it can't, and
    JobRefused where it works otherwise.
    """

    name: BackendName

    def submit(self, order: Order) -> None:
        """Let a job wait for its turn. Raises NameTaken where its name cannot be used again."""

    def state(self, name: str) -> JobState:
        """Return the state of a job that has not started to train."""

    def last_words(self, name: str, folder: Path) -> str:
        """Return the last line of a job that is over, or the cluster's message."""

    def cancel(self, name: str) -> None:
        """End a job that need not begin any more; there may be none."""

    def examined(self) -> tuple[str, bool]:
        """Return what the cluster is, in words, and whether its release differs from ours."""


def waits(run: Run) -> bool:
    """Return whether a run with a ticket waits, also if its server was killed while starting it."""
    state = run.status.state
    if state != "interrupted":
        return state == "queued"
    return (read_json(run.folder / "status.json") or {}).get("state") == "starting"
