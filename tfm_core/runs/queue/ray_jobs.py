"""Ray Jobs: with TFM_RAY_ADDRESS each run, trials of sweeps too, is a job of a Ray cluster.

The job is a worker (``process.worker``) on a machine that sees the same folder of runs. Pause, stop
and snapshots go through that folder, so Ray is asked only to start jobs, and what became of those
whose run has not begun: such a run fails with the job's last line. A job that dies later leaves its
run interrupted, as any other worker does. A job whose run does not wait any more ends by itself.

Only the job API is used, which is HTTP. Credentials are Ray's own: ``RAY_AUTH_MODE=token`` and
``RAY_AUTH_TOKEN`` in the environment of the server. Ray is imported when it is first asked.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import secrets
import shlex
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tfm_core
from tfm_core.runs.disk.locks import RunLock, RunLocked
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.waiting_line import Unavailable
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.sentences import N_
from tfm_core.training.devices import Device

DEVICES = (
    Device("cpu", N_("Cluster CPU"), thread_choices=(1, 2, 4, 8)),
    Device("cuda:0", N_("Cluster GPU")),
)
"""What a run can ask for. A job sees its one GPU as cuda:0, and waits for what there is not."""

LOOK_SECONDS = 5.0
"""How often to ask what became of the jobs whose run has not begun."""

ANSWER_SECONDS = 20.0
"""How long the head may take to answer."""

_UNPLACED = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"
"""The end of a job that waited for resources for too long: its run gets another."""

logger = logging.getLogger(__name__)


class RayJobs:
    """Submits each run whose turn it is. Only the queue's thread calls it."""

    retry_seconds = 3.0
    places = 8  # submitted runs at a time, waiting in the cluster or training

    def __init__(self, root: Path, limits: Limits, address: str) -> None:
        """Prepare; Ray is first asked when a run waits. address: of the head's dashboard."""
        self.address = address
        self._root, self._limits = root, limits
        self._known_client: Any = None
        self._jobs: dict[str, str] = {}  # by waiting run
        self._look_at = 0.0
        self._down: str | None = None

    def start(self, run: Run) -> None:
        """Submit a job for a waiting run. Raises Unavailable."""
        if self._down is not None:
            raise Unavailable(self._down)
        name = f"{run.id}-{secrets.token_hex(3)}"  # Ray takes no name twice
        with self._client() as client:
            client.submit_job(
                entrypoint=shlex.join(self._command(run)),
                submission_id=name,
                metadata={"run": run.id},
                runtime_env={"env_vars": _environment(self._root)},
                entrypoint_num_cpus=run.meta.threads,
                entrypoint_num_gpus=int(run.meta.device.startswith("cuda")),
            )
        self._jobs[run.id] = name

    def handed_over(self, waiting: Sequence[str]) -> Collection[str]:
        """Return which waiting runs have a job, after a look at the jobs where one is due."""
        self._jobs = {run_id: name for run_id, name in self._jobs.items() if run_id in waiting}
        if waiting and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_SECONDS
            try:
                with self._client() as client:
                    self._follow(waiting, {job.submission_id: job for job in client.list_jobs()})
                self._down = None
            except Unavailable as error:
                if self._down != error.sentence:
                    logger.warning("%s", error)
                self._down = error.sentence
                for run_id in self._jobs:
                    waiting_line.start_errors[self._root / run_id] = error.sentence
        return self._jobs.keys()

    def get_ready(self) -> None:
        """Do nothing: a cluster gets itself ready."""

    def close(self) -> None:
        """Leave all jobs as they are."""

    def release(self) -> str:
        """Return the release of Ray on the cluster. Raises Unavailable."""
        with self._client() as client:
            import ray

            return str(getattr(client, "_server_ray_version", None) or ray.__version__)

    def _command(self, run: Run) -> tuple[str, ...]:
        limits = {"--max-seconds": self._limits.max_seconds, "--max-pause": self._limits.max_pause}
        bounds = [f"{name}={value:g}" for name, value in limits.items() if value is not None]
        worker = (sys.executable, "-m", "tfm_core.runs.process.worker")
        return (*worker, *bounds, f"--run={run.folder}")

    def _follow(self, waiting: Sequence[str], jobs: Mapping[str, Any]) -> None:
        """Look at the jobs of waiting runs, also those that an earlier server submitted."""
        for job in jobs.values():
            run_id = str((job.metadata or {}).get("run"))
            if run_id in waiting and not job.status.is_terminal():
                self._jobs.setdefault(run_id, job.submission_id)
        for run_id, name in list(self._jobs.items()):
            job, folder = jobs.get(name), self._root / run_id
            error = job and str(getattr(job.error_type, "value", job.error_type))
            if job is None or error == _UNPLACED:  # a restarted head knows no job
                del self._jobs[run_id]
            elif job.status.is_terminal():
                self._fail(Run(folder), job)
            else:
                words = N_("Submitted to Ray, which starts it when the cluster has room.")
                waiting_line.start_errors[folder] = words

    def _fail(self, run: Run, job: Any) -> None:
        """Let a run fail whose job ended before it began."""
        with self._client() as client:
            log = client.get_job_logs(job.submission_id)
        lines = [line for line in log.splitlines() if line.strip()]
        last = lines[-1] if lines else job.message
        reason = N_("The job ended before training started: {last}", last=last)
        with contextlib.suppress(RunLocked, OSError), RunLock(run.folder):
            if waiting_line.waits(run.folder):
                write_status(
                    run.folder, dataclasses.replace(run.status, state="failed", reason=reason)
                )
                waiting_line.leave(self._root, run.id)

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        """Give Ray's client; what it raises becomes Unavailable, in a sentence."""
        try:
            if self._known_client is None:
                self._known_client = _connected(self.address)
            yield self._known_client
        except Unavailable:
            raise
        except Exception as error:
            self._known_client = None  # its release is compared again
            raise _unavailable(error, self.address) from error


def _connected(address: str) -> Any:
    try:
        from ray.job_submission import JobSubmissionClient
    except ImportError:
        raise Unavailable(
            "Ray is not installed on this server: pip install -r requirements-cluster.txt"
        ) from None

    for name in ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS"):
        if os.environ.get(name, address) != address:
            raise Unavailable(
                "Unset {name}: Ray would use it instead of TFM_RAY_ADDRESS.", name=name
            )

    class Client(JobSubmissionClient):  # type: ignore[misc]
        """A client that doesn't wait for ever."""

        def _do_request(self, *args: Any, **options: Any) -> Any:
            return super()._do_request(*args, **{"timeout": ANSWER_SECONDS, **options})

    return Client(address)


def _environment(root: Path) -> dict[str, str]:
    """Return what a job must know: the folders, the host's limits, and one thread a product."""
    code = str(Path(tfm_core.__file__).resolve().parent.parent)
    path = os.pathsep.join([code, *filter(None, [os.environ.get("PYTHONPATH")])])
    shared = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("TFM_") and name != "TFM_RAY_ADDRESS"
    }
    return {
        **shared,
        "TFM_RUNS_DIR": str(root),
        "TFM_DATA_DIR": str(Path(shared.get("TFM_DATA_DIR") or "data").absolute()),
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }


def _unavailable(error: Exception, address: str) -> Unavailable:
    """Return what a client's error means, in a sentence."""
    from ray.exceptions import AuthenticationError
    from requests import exceptions

    answer = next(iter(str(error).strip().splitlines()), type(error).__name__)
    refused = isinstance(error, exceptions.HTTPError) and error.response.status_code in {401, 403}
    if refused or isinstance(error, AuthenticationError):
        return Unavailable(
            "Ray at {address} refuses the credentials: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN.",
            address=address,
        )
    if isinstance(error, exceptions.Timeout):
        return Unavailable(
            "Ray at {address} did not respond within {seconds:.0f} seconds, so runs wait.",
            address=address,
            seconds=ANSWER_SECONDS,
        )
    if isinstance(error, ConnectionError | exceptions.ConnectionError):
        return Unavailable(
            "There is no Ray at {address}. Start it, or correct TFM_RAY_ADDRESS.", address=address
        )
    import ray

    return Unavailable(
        "Ray at {address} refused the request: {answer} Is it the dashboard of Ray {release}?",
        address=address,
        answer=answer,
        release=ray.__version__,
    )
