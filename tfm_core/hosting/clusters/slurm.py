"""Slurm: a run is a batch job, submitted with ``sbatch --wrap`` and found again by its name.

Account, partition and time limit are TFM_SLURM_OPTIONS. A job that reaches its time limit is asked
to end, keeps a checkpoint, and its run goes on in another one.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from tfm_core.runs.backends.backend import Cluster, JobRefused, JobState, Order, Unavailable
from tfm_core.runs.settings import BackendName
from tfm_core.sentences import N_

ANSWER_SECONDS = 30.0
LOG = "job.log"
"""In the run's folder: the job's output before the run's own log begins."""

_LOST = {"BOOT_FAIL", "NODE_FAIL", "PREEMPTED", "REVOKED"}
_OVER = {"CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "TIMEOUT"}


class Slurm(Cluster):
    """The jobs of the cluster that this machine's ``sbatch`` submits to."""

    name: BackendName = "slurm"

    def __init__(self, options: tuple[str, ...] = ()) -> None:
        """Take options of sbatch that every job gets."""
        self.options = options

    def submit(self, order: Order) -> None:
        """Submit a job. Slurm allows two of one name; the second then ends by itself."""
        _run(
            "sbatch",
            "--parsable",
            *self.options,
            f"--job-name={order.name}",
            f"--cpus-per-task={order.cpus}",
            *([f"--gres=gpu:{order.gpus}"] if order.gpus else []),
            "--no-requeue",  # the queue resubmits it under another name
            "--export=ALL",
            f"--chdir={order.root}",
            f"--output={str(order.folder / LOG).replace('%', '%%')}",
            f"--wrap={shlex.join(order.command)}",
            environment=order.environment,
        )

    def state(self, name: str) -> JobState:
        """Return the state of a job that has not started to train."""
        states = self._states(name)
        if states - _LOST - _OVER:
            return "there"
        return "over" if states & _OVER else "lost"

    def last_words(self, name: str, folder: Path) -> str:
        """Return the last line of the job's log, or its state."""
        try:
            text = (folder / LOG).read_text(encoding="utf-8", errors="replace")[-4096:]
        except OSError:
            text = ""
        lines = [line for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else f"{', '.join(sorted(self._states(name)))}."

    def cancel(self, name: str) -> None:
        """Cancel the job, if there is one."""
        _run("scancel", f"--name={name}")

    def examined(self) -> tuple[str, bool]:
        """Return the release, once the controller has answered; it checks that they fit."""
        _run("squeue", "--noheader", "--name=none")
        return f"{_run('sbatch', '--version').strip()} trains the runs.", False

    def _states(self, name: str) -> set[str]:
        rows = _run("squeue", "--noheader", "--states=all", "--format=%T", f"--name={name}")
        return set(rows.split())


def _run(*command: str, environment: dict[str, str] | None = None) -> str:
    """Return what a command of Slurm wrote. Raises Unavailable, in a sentence."""
    hidden = {"TFM_HOST_KEY"}
    own = {name: value for name, value in os.environ.items() if name not in hidden}
    try:
        done = subprocess.run(
            command,
            env=own | (environment or {}),
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise Unavailable(
            "This server uses Slurm, but {program} is not installed.", program=command[0]
        ) from None
    except subprocess.TimeoutExpired:
        raise Unavailable(
            "Slurm did not respond in {seconds:.0f} seconds. Runs wait.", seconds=ANSWER_SECONDS
        ) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        kind = Unavailable if "Unable to contact" in lines[-1] else JobRefused
        raise kind(N_("Slurm refused this: {answer}. Runs wait.", answer=lines[-1]))
    return done.stdout
