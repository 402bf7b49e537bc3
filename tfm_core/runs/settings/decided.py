"""The host's settings: the ``TFM_`` variables of the environment, each a field with its meaning."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from tfm_core import languages
from tfm_core.runs.settings.values import (
    PREFIX,
    Address,
    Addresses,
    Backend,
    BackendName,
    Command,
    Device,
    Hosts,
    Key,
    Options,
    People,
    Size,
    Sources,
    StoreAddress,
    Switch,
    Whole,
)


def variable(value: Any, meaning: str, *, default: str, zero: str = "", public: Any = None) -> Any:
    """Return a field of ``Settings``.

    meaning: what it is, with its unit. default: ``value`` in words. zero: what 0 means, "" where it
    is no number. public: the value with TFM_PUBLIC=1, where that is another one.
    """
    words: dict[str, Any] = {"default": default, "zero": zero, "public": public}
    return Field(value, description=meaning, json_schema_extra=words)


class Settings(BaseSettings):
    """What a host decided; None where nothing was set: no limit, or whatever suits the machine.

    Everywhere 0 means none: a server that lets none wait, train or be kept only shows what it has
    (``only_shows``). ``read`` fills it from the environment.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    runs_dir: Path = variable(Path("runs"), "the folder of runs", default="`runs/`")
    runs_url: StoreAddress | None = variable(
        None,
        "a store that servers share, as an address of fsspec: `s3://bucket/runs`,"
        " `file:///mnt/shared/runs`; see docs/storage.md",
        default="none",
    )
    warm_workers: Whole | None = variable(
        None,
        "idle processes with everything loaded, so that runs start at once",
        default="1; 0 on small machines",
        zero="a start takes some seconds",
    )
    warm_device: Device | None = variable(
        None,
        "a device, such as `cuda:0`, on which they warm up so that runs start at once there, "
        "too; each then uses some hundred MB of its memory",
        default="none: runs on a GPU wait for its start",
    )
    max_running: Whole | None = variable(
        None,
        "runs that train at the same time; the others wait",
        default="cores − 1; 8 jobs of a cluster",
        zero="only shows",
    )
    max_queued: Whole = variable(20, "runs that may wait", default="20", zero="only shows")
    max_per_session: Whole = variable(
        8,
        "runs of one visitor that train or wait, resumed ones included",
        default="8; public: 2",
        zero="only shows",
        public=2,
    )
    max_steps: Whole | None = variable(
        None,
        "steps of the longest run",
        default="no limit; public: 20000",
        zero="only shows",
        public=20_000,
    )
    max_parameters: Whole | None = variable(
        None,
        "parameters of the largest model",
        default="no limit; public: 5000000",
        zero="only shows",
        public=5_000_000,
    )
    max_seconds: Whole | None = variable(
        None,
        "seconds that a run may train, over all its resumes; then it is stopped",
        default="no limit; public: 3600",
        zero="only shows",
        public=3600,
    )
    max_pause: Whole = variable(
        600,
        "seconds that a paused run keeps its place while others wait; then it is stopped",
        default="600; public: 60",
        zero="it is stopped as soon as others wait",
        public=60,
    )
    max_attention: Whole = variable(
        20_000_000,
        "attention weights in a snapshot (2 bytes each: layers × heads × tokens² × examples); "
        "beyond it fewer examples are kept, and a model that has more for one is refused",
        default="20000000",
        zero="only shows",
    )
    max_weights: Size = variable(
        16_000_000,
        "space for a run's weights at some of its steps, in half precision, to say from which "
        "step on it read a picture; a run with larger weights keeps none",
        default="16MB",
        zero="no run keeps any",
    )
    max_disk: Size | None = variable(
        None,
        "space for all runs and data sets (`500MB`, `20GB`, `1.5TB`)",
        default="no limit; public: 20GB",
        zero="only shows; nothing is deleted",
        public=20_000_000_000,
    )
    max_runs: Whole | None = variable(
        None,
        "runs that are kept",
        default="no limit; public: 1000",
        zero="only shows; nothing is deleted",
        public=1000,
    )
    max_own_data: Size | None = variable(
        None,
        "space for the data sets that visitors add",
        default="no limit; public: 2GB",
        zero="none can be added",
        public=2_000_000_000,
    )
    max_published: Whole = variable(
        20,
        "runs that the app publishes at a time, each of some MB, for watchers without a session",
        default="20; 0 with `TFM_LOGIN_TO_WATCH=1`",
        zero="none can be published",
    )
    recorded_only: Switch = variable(
        False,
        "1 shows the recorded runs and nothing else, without PyTorch; see docs/deploy.md",
        default="0",
    )
    public: Switch = variable(
        False,
        "1 for a server on the internet: runs belong to the visitors who started them, and "
        "limits have the public defaults",
        default="0",
    )
    open: Switch = variable(
        True,
        "1 lists all visitors' runs for everybody",
        default="1; public: 0",
        zero="visitors see only their own runs; others open by their link",
        public=False,
    )
    host_key: Key | None = variable(
        None,
        "the key with which the host may change all runs; 16 characters or more",
        default="none",
    )
    lessons_dir: Path | None = variable(
        None, "a folder with a teacher's lessons; see docs/lessons.md", default="none"
    )
    models_dir: Path | None = variable(
        None,
        "a folder with Hugging Face folders that visitors may open as runs; nothing outside it is"
        " read",
        default="none",
    )
    lessons_key: Key | None = variable(
        None,
        "the key that signs the results of lessons; 16 characters or more",
        default="one that is made once and kept in the folder of runs",
    )
    login_to_watch: Switch = variable(
        False,
        "1 shows nothing without a login; see docs/deploy.md",
        default="0: anybody may watch",
    )
    may_start: People = variable(
        (),
        "people who may start runs, by e-mail address or domain: `ann@example.org @example.com`",
        default="everybody who is logged in",
    )
    admins: Addresses = variable(
        (),
        "people who may change all runs, by e-mail address",
        default="none",
    )
    frame_ancestors: Sources | None = variable(
        None,
        "sites that may show the app in a frame, as in a Content-Security-Policy: "
        "`'self' https://example.org`",
        default="every site; public: `'self'`",
        public="'self'",
    )
    hosts: Hosts = variable(
        (),
        "host names of the app on the loopback address, behind a proxy that adds no "
        "`X-Forwarded-` or `Forwarded` header: `app.example.org *.example.com`; `*` allows every "
        "name; see docs/security.md",
        default="`localhost` and this computer's own",
    )
    backend: Backend | None = variable(
        None,
        "what trains the runs: `local` (processes of this machine), `ray` or `slurm` (jobs of a "
        "cluster, see docs/cluster.md)",
        default="`ray` if `TFM_RAY_ADDRESS` is set, else `local`",
    )
    ray_address: Address | None = variable(
        None, "the dashboard of a Ray cluster's head: `http://HOST:8265`", default="none"
    )
    slurm_options: Options = variable(
        (), "options of `sbatch` for every job: `--partition=gpu --time=4:00:00`", default="none"
    )
    cluster_python: Command = variable(
        (), "the command of Python on the machines of the cluster", default="this server’s own"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *_others: PydanticBaseSettingsSource,
        **_more: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values from the call alone: which environment counts, ``read`` is given."""
        return (init_settings,)

    @property
    def trains_on(self) -> BackendName:
        """The back end: TFM_BACKEND, else Ray if its address is set."""
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


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable; see ``variable``."""

    name: str
    field: str
    meaning: str
    default: str
    zero: str = ""
    public: Any = None


def _variable(field: str) -> Variable:
    info = Settings.model_fields[field]
    words: Any = info.json_schema_extra
    return Variable(f"{PREFIX}{field.upper()}", field, str(info.description), **words)


VARIABLES = tuple(map(_variable, Settings.model_fields))

OTHERS = (
    Variable(
        "TFM_DATA_DIR",
        "",
        "the folder of downloaded data sets; a complete MNIST there is used as it is",
        "`data/`",
    ),
    Variable(
        "TFM_LANGUAGE",
        "",
        "the language of the pages for who has chosen none, neither by a link nor in the frame",
        "the browser's, else `en`",
    ),
    Variable(
        languages.VARIABLE,
        "",
        "a folder with a translator's languages, whose files come before the app's; see "
        "docs/translating.md",
        "none",
    ),
)
"""Variables that are no settings of a host: the code that uses them reads them."""
