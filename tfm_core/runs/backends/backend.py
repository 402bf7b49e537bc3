"""What the queue asks of a back end, and a back end promises the queue.

The queue decides which waiting run is next, and whether there is a place; the back end gives it to
whoever trains it. Whoever that is holds the run's claim while it trains, and speaks with the app
through the run's folder alone, so pause, step, stop and snapshots are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from tfm_core.runs.disk.atomic import read_json
from tfm_core.runs.run import Run
from tfm_core.runs.settings import BackendName
from tfm_core.sentences import StudentError


class Unavailable(StudentError):
    """A back end takes no run just now; ``sentence`` says why. Waiting runs go on waiting."""


class JobRefused(Unavailable):
    """A cluster answers, and does not take this run: the next in the line may have its turn."""


class Backend(Protocol):
    """Trains the runs whose turn has come. Only the queue's thread asks it."""

    name: BackendName
    places: int
    """How many runs it trains at once where the host doesn't say."""

    def start(self, run: Run) -> bool:
        """Give a waiting run to whoever trains it; say whether it has it now.

        False: it waits no more. Raises Unavailable, claim.RunHeld and OSError; then it still waits.
        """

    def has(self, run: Run) -> bool:
        """Say whether a waiting run was handed over already and has not begun yet."""

    def look_after(self, runs: Callable[[], Iterable[Run]]) -> None:
        """Look what became of what was handed over; no other server does so at the same time.

        runs: gives all runs of the folder.
        """

    def get_ready(self) -> None:
        """Get ready for more runs. Raises OSError."""

    def n_warm(self) -> int:
        """Return how many workers wait for a run."""

    def close(self) -> None:
        """End what waits; what trains goes on."""


def waits(run: Run) -> bool:
    """Say whether a run with a ticket waits: also one whose server was killed as it started it."""
    state = run.status.state
    if state != "interrupted":
        return state == "queued"
    return (read_json(run.folder / "status.json") or {}).get("state") == "starting"
