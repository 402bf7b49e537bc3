"""What a host decided, in one record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

BackendName = Literal["local", "ray", "slurm"]
"""Who trains the runs: processes of this machine, or jobs of a cluster."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a host decided; None where nothing was said: no limit, or whatever suits the machine.

    Everywhere 0 means none: a server that lets none wait, train or be kept only shows what it has
    (``only_shows``). ``public`` gives most limits another default (see ``VARIABLES``); what is said
    by name stands in any case.
    """

    runs_dir: Path = Path("runs")
    runs_url: str | None = None
    max_running: int | None = None
    warm_workers: int | None = None
    warm_device: str | None = None
    max_queued: int = 20
    max_per_session: int = 8
    max_steps: int | None = None
    max_parameters: int | None = None
    max_seconds: int | None = None
    max_pause: int = 600
    max_attention: int = 20_000_000
    max_weights: int = 16_000_000
    max_disk: int | None = None
    max_runs: int | None = None
    max_own_data: int | None = None
    max_published: int = 20
    recorded_only: bool = False
    public: bool = False
    open: bool = True
    host_key: str | None = None
    login_to_watch: bool = False
    may_start: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()
    frame_ancestors: str | None = None
    hosts: tuple[str, ...] = ()
    backend: BackendName | None = None
    ray_address: str | None = None
    slurm_options: tuple[str, ...] = ()
    cluster_python: tuple[str, ...] = ()

    @property
    def trains_on(self) -> BackendName:
        """The back end: what was said, else Ray where its address was said."""
        return self.backend or ("local" if self.ray_address is None else "ray")

    @property
    def only_shows(self) -> bool:
        """Whether no run may be started or resumed here, because a limit is 0."""
        limits = (
            self.max_running,
            self.max_queued,
            self.max_per_session,
            self.max_steps,
            self.max_parameters,
            self.max_seconds,
            self.max_attention,
            self.max_disk,
            self.max_runs,
        )
        return 0 in limits
