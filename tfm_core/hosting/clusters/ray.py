"""Ray Jobs: a run is a job that the head of a Ray cluster runs with the CPUs and GPUs it needs.

Only the job API is used, which is HTTP: no tasks, no Ray Client. A job belongs to the life of its
head, and ends with it; the run doesn't. Credentials are Ray's own: ``RAY_AUTH_MODE=token`` and
``RAY_AUTH_TOKEN`` in the environment of the server. Ray is imported when it is first asked.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfm_core.runs.backends.backend import (
    Cluster,
    JobRefused,
    JobState,
    NameTaken,
    Order,
    Unavailable,
)
from tfm_core.runs.settings import BackendName

ANSWER_SECONDS = 20.0
"""How long the head may take to answer."""

_UNPLACED = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"
_LOST = {
    "JOB_SUPERVISOR_ACTOR_DIED",
    "JOB_SUPERVISOR_ACTOR_START_FAILURE",
    "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE",
    "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE",
}
"""Ends that say something of the cluster and nothing of the command."""

_NOT_RAY = "check returned 404"


class RayJobs(Cluster):
    """The jobs of one head."""

    name: BackendName = "ray"

    def __init__(self, address: str) -> None:
        """Take the address of the head's dashboard, as ``http://HOST:8265``."""
        self.address = address
        self._known: Any = None

    def submit(self, order: Order) -> None:
        """Submit a job. Ray takes each name once, also of a job that was deleted."""
        with self._connected() as client:
            try:
                client.submit_job(
                    entrypoint=shlex.join(order.command),
                    submission_id=order.name,
                    runtime_env={"env_vars": order.environment},
                    entrypoint_num_cpus=order.cpus,
                    entrypoint_num_gpus=order.gpus,
                )
            except RuntimeError:
                if self._info(client, order.name) is None:
                    raise
                raise NameTaken(order.name) from None

    def state(self, name: str) -> JobState:
        """Return the state of a job that has not started to train."""
        with self._connected() as client:
            info = self._info(client, name)
        if info is None:
            return "lost"
        if not info.status.is_terminal():
            return "there"
        why = str(getattr(info.error_type, "value", info.error_type))
        return "unplaced" if why == _UNPLACED else "lost" if why in _LOST else "over"

    def last_words(self, name: str, folder: Path) -> str:
        """Return the last line of a job's log, or Ray's message."""
        with self._connected() as client:
            lines = [line for line in client.get_job_logs(name).splitlines() if line.strip()]
            return str(lines[-1] if lines else client.get_job_info(name).message)

    def cancel(self, name: str) -> None:
        """Stop a job; Ray ends one that waits for resources when it starts."""
        with self._connected() as client:
            if self._info(client, name) is not None:
                client.stop_job(name)

    def examined(self) -> tuple[str, bool]:
        """Return the address and the release of the cluster, and the one here where it differs."""
        with self._connected() as client:
            import ray

            there = getattr(client, "_server_ray_version", None) or ray.__version__
        words = f"Ray {there} at {self.address} trains the runs"
        if there == ray.__version__:
            return f"{words}.", False
        return f"{words}; here is Ray {ray.__version__}.", True

    def _info(self, client: Any, name: str) -> Any:
        """Return what Ray knows of a job, None where it knows none."""
        try:
            return client.get_job_info(name)
        except RuntimeError as error:
            if "does not exist" in str(error):
                return None
            raise

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        """Give the client; what Ray answers otherwise is raised as Unavailable, in a sentence."""
        try:
            if self._known is None:
                self._known = _client(self.address)
            yield self._known
        except (NameTaken, Unavailable):
            raise
        except Exception as error:
            self._known = None  # its release is compared again
            raise _unavailable(error, self.address) from error


def _client(address: str) -> Any:
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
            "Ray at {address} did not respond in {seconds:.0f} seconds. Runs wait.",
            address=address,
            seconds=ANSWER_SECONDS,
        )
    if isinstance(error, ConnectionError | exceptions.ConnectionError):
        return Unavailable(
            "There is no Ray at {address}. Start it, or correct TFM_RAY_ADDRESS.", address=address
        )
    if isinstance(error, exceptions.RequestException | KeyError | ValueError) or _NOT_RAY in answer:
        return Unavailable(
            "{address} is not a Ray dashboard ({answer}). Correct TFM_RAY_ADDRESS.",
            address=address,
            answer=answer,
        )
    import ray

    return JobRefused(
        "Ray at {address} refused this: {answer} Is its release {release}?",
        address=address,
        answer=answer,
        release=ray.__version__,
    )
