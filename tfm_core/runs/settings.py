"""What the host of a server decides: every ``TFM_`` variable of the environment that bounds it.

They are read here and nowhere else. ``VARIABLES`` says of each what it means, its unit too, and
what 0 means; the README's table is held to it. A value that cannot be read is one sentence, which
the app and the command line say before they begin.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from tfm_core.sentences import StudentError

BackendName = Literal["local", "ray", "slurm"]
"""Who trains the runs: processes of this machine, or jobs of a cluster."""

SHORTEST_KEY = 16
"""Characters that a host's key needs at least: it is guessed over the network."""


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


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable: the field that it fills, and how it is read.

    zero: what 0 means, or "" where it is no number. default: the field's, in words.
    public: the field's default with TFM_PUBLIC=1, where that is another one.
    """

    name: str
    field: str
    meaning: str
    default: str
    zero: str
    read: Callable[[str, str], Any]
    public: Any = None


def read(environment: Mapping[str, str] | None = None) -> Settings:
    """Return what the environment says. Raises StudentError: the variable, and what is right.

    A variable that is empty counts as not said. ``os.environ`` is read where none is given.
    """
    said = os.environ if environment is None else environment
    values = {
        variable.field: variable.read(variable.name, text)
        for variable in VARIABLES
        if (text := said.get(variable.name, "").strip())
    }
    if values.get("public"):
        defaults = {v.field: v.public for v in VARIABLES if v.public is not None}
        values = defaults | values
    if values.get("login_to_watch"):  # who has a published run's address watches without a login
        values = {"max_published": 0} | values
    settings = Settings(**values)
    if settings.trains_on == "ray" and settings.ray_address is None:
        raise StudentError(
            "TFM_BACKEND is 'ray', so TFM_RAY_ADDRESS must name its head, as http://HOST:8265."
        )
    return settings


def checked(environment: Mapping[str, str] | None = None) -> Settings:
    """Return what the environment says, for a start: the folder of runs is there or can be made.

    Raises StudentError: the variable, and what is right.
    """
    said = read(environment)
    there = next(
        p for p in (said.runs_dir, *said.runs_dir.absolute().parents) if os.path.lexists(p)
    )
    if not there.is_dir():
        raise StudentError(
            "TFM_RUNS_DIR is {text!r}, but must name a folder, and {there} is none.",
            text=str(said.runs_dir),
            there=str(there),
        )
    if said.runs_url is not None:
        _check_address(said.runs_url)
    return said


def _check_address(url: str) -> None:
    """Raise StudentError where nothing is installed that could open an address."""
    import fsspec

    protocol = url.partition("://")[0]
    try:
        fsspec.get_filesystem_class(protocol)
    except ImportError:
        raise StudentError(
            "TFM_RUNS_URL begins with {protocol}://, but must begin with what is installed here: "
            "pip install -r requirements-cluster.txt brings s3://, and fsspec's pages say what "
            "brings others.",
            protocol=protocol,
        ) from None
    except ValueError:
        raise StudentError(
            "TFM_RUNS_URL begins with {protocol}://, but must begin with one that fsspec knows, "
            "such as s3:// or file://.",
            protocol=protocol,
        ) from None


def whole(name: str, text: str) -> int:
    """Return a whole number from 0. Raises StudentError."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise StudentError(
            "{name} is {text!r}, but must be a whole number: 0 for none, or more.",
            name=name,
            text=_short(text),
        )
    return int(text)


def size(name: str, text: str) -> int:
    """Return bytes: 500MB, 20GB, 1.5TB, 20GiB, or a plain number of bytes. Raises StudentError."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise StudentError(
            "{name} is {text!r}, but must be a size such as 500MB, 20GB or 1.5TB: 0 for none.",
            name=name,
            text=_short(text),
        )
    number, prefix, binary = match.groups()
    base = 1024 if binary else 1000
    return int(float(number) * base ** " KMGT".index((prefix or " ").upper()))


def switch(name: str, text: str) -> bool:
    """Return whether a switch is on. Raises StudentError."""
    if text not in {"0", "1"}:
        raise StudentError(
            "{name} is {text!r}, but must be 1 (on) or 0 (off).", name=name, text=_short(text)
        )
    return text == "1"


def key(name: str, text: str) -> str:
    """Return a key as it is. Raises StudentError, which doesn't repeat it, for one too short."""
    if len(text) < SHORTEST_KEY:
        raise StudentError(
            "{name} has {n} characters, but must have at least {least}: it opens every run.",
            name=name,
            n=len(text),
            least=SHORTEST_KEY,
        )
    return text


def people(name: str, text: str) -> tuple[str, ...]:
    """Return e-mail addresses and domains in lower case. Raises StudentError."""
    words = tuple(text.lower().replace(",", " ").split())
    if not all(_PEOPLE.fullmatch(word) for word in words):
        raise StudentError(
            "{name} is {text!r}, but must be e-mail addresses such as ann@example.org, and domains "
            "such as @example.org for all of its addresses, with a space between them.",
            name=name,
            text=_short(text),
        )
    return words


def addresses(name: str, text: str) -> tuple[str, ...]:
    """Return e-mail addresses in lower case. Raises StudentError for a domain, too."""
    words = tuple(text.lower().replace(",", " ").split())
    if not all(_PEOPLE.fullmatch(word) and not word.startswith("@") for word in words):
        raise StudentError(
            "{name} is {text!r}, but must be e-mail addresses such as ann@example.org, with a "
            "space between them.",
            name=name,
            text=_short(text),
        )
    return words


def sources(name: str, text: str) -> str:
    """Return sources of a Content-Security-Policy, a space between them. Raises StudentError."""
    words = text.split()
    if not all(_SOURCE.fullmatch(word) for word in words):
        raise StudentError(
            "{name} is {text!r}, but must be 'none', or 'self' and addresses such as "
            "https://example.org, with a space between them; * lets every site.",
            name=name,
            text=_short(text),
        )
    return " ".join(words)


def backend(name: str, text: str) -> str:
    """Return the name of a back end. Raises StudentError."""
    if text not in (names := get_args(BackendName)):
        raise StudentError(
            "{name} is {text!r}, but must be one of {names}.",
            name=name,
            text=_short(text),
            names=", ".join(names),
        )
    return text


def address(name: str, text: str) -> str:
    """Return the address of a server. Raises StudentError."""
    if _ADDRESS.fullmatch(text) is None:
        raise StudentError(
            "{name} is {text!r}, but must be an address such as http://HOST:8265.",
            name=name,
            text=_short(text),
        )
    return text.rstrip("/")


def options(name: str, text: str) -> tuple[str, ...]:
    """Return the options of a command, each in its long form. Raises StudentError."""
    words = command(name, text)
    wrong = next((word for word in words if not _OPTION.fullmatch(word)), None)
    if wrong is not None:
        raise StudentError(
            "{name} has {wrong!r}, but must be options such as --partition=gpu --time=4:00:00.",
            name=name,
            wrong=_short(wrong),
        )
    return words


def command(name: str, text: str) -> tuple[str, ...]:
    """Return the words of a command, as a shell takes them apart. Raises StudentError."""
    try:
        return tuple(shlex.split(text))
    except ValueError:
        raise StudentError(
            "{name} is {text!r}, but must be words of a shell, with every quote closed.",
            name=name,
            text=_short(text),
        ) from None


def store_address(name: str, text: str) -> str:
    """Return an address of fsspec as it is. Raises StudentError."""
    protocol, _, place = text.partition("://")
    if not (_PROTOCOL.fullmatch(protocol) and place.strip("/")):
        raise StudentError(
            "{name} is {text!r}, but must be an address such as s3://bucket/runs or "
            "file:///mnt/shared/runs.",
            name=name,
            text=_short(text.rpartition("@")[2]),  # without a password
        )
    return text.rstrip("/")


def folder(_name: str, text: str) -> Path:
    """Return the whole path of a folder, which need not be there."""
    return Path(text).absolute()


VARIABLES = (
    Variable(
        "TFM_RUNS_DIR",
        "runs_dir",
        "the folder of runs",
        "`runs/`",
        "",
        folder,
    ),
    Variable(
        "TFM_RUNS_URL",
        "runs_url",
        "a store that several servers share, as an address of fsspec: `s3://bucket/runs`, "
        "`file:///mnt/shared/runs`; see docs/storage.md",
        "none",
        "",
        store_address,
    ),
    Variable(
        "TFM_WARM_WORKERS",
        "warm_workers",
        "processes that wait with everything loaded, so that a start is felt at once; on a GPU its "
        "own start comes on top, since none of them holds memory there while it waits",
        "1; 0 on small machines",
        "none waits; a start takes some seconds",
        whole,
    ),
    Variable(
        "TFM_MAX_RUNNING",
        "max_running",
        "trainings at the same time; the others queue",
        "cores − 1; 8 jobs of a cluster",
        "only shows",
        whole,
    ),
    Variable(
        "TFM_MAX_QUEUED",
        "max_queued",
        "runs that may wait",
        "20",
        "only shows",
        whole,
    ),
    Variable(
        "TFM_MAX_PER_SESSION",
        "max_per_session",
        "runs of one visitor that train or wait, resumed ones too",
        "8; public: 2",
        "only shows",
        whole,
        public=2,
    ),
    Variable(
        "TFM_MAX_STEPS",
        "max_steps",
        "steps of the longest run",
        "no limit; public: 20000",
        "only shows",
        whole,
        public=20_000,
    ),
    Variable(
        "TFM_MAX_PARAMETERS",
        "max_parameters",
        "parameters of the largest model",
        "no limit; public: 5000000",
        "only shows",
        whole,
        public=5_000_000,
    ),
    Variable(
        "TFM_MAX_SECONDS",
        "max_seconds",
        "seconds that a run may train, over all its resumes, before it is stopped",
        "no limit; public: 3600",
        "only shows",
        whole,
        public=3_600,
    ),
    Variable(
        "TFM_MAX_PAUSE",
        "max_pause",
        "seconds that a paused run keeps its place while others wait; then it is stopped",
        "600; public: 60",
        "it is stopped as soon as others wait",
        whole,
        public=60,
    ),
    Variable(
        "TFM_MAX_ATTENTION",
        "max_attention",
        "attention weights (2 bytes each: layers × heads × tokens² × examples) that a snapshot "
        "keeps; beyond it fewer examples are kept, and a model with more on one is refused",
        "20000000",
        "only shows",
        whole,
    ),
    Variable(
        "TFM_MAX_WEIGHTS",
        "max_weights",
        "room for the weights that a run keeps at some of its steps, in half precision, to say "
        "from when on it read a picture; a run whose weights would take more keeps none",
        "16MB",
        "no run keeps any",
        size,
    ),
    Variable(
        "TFM_MAX_DISK",
        "max_disk",
        "room for all runs and data sets (`500MB`, `20GB`, `1.5TB`)",
        "no limit; public: 20GB",
        "only shows; nothing is deleted",
        size,
        public=20 * 10**9,
    ),
    Variable(
        "TFM_MAX_RUNS",
        "max_runs",
        "runs that are kept",
        "no limit; public: 1000",
        "only shows; nothing is deleted",
        whole,
        public=1_000,
    ),
    Variable(
        "TFM_MAX_OWN_DATA",
        "max_own_data",
        "room for the data sets that visitors add",
        "no limit; public: 2GB",
        "none can be added",
        size,
        public=2 * 10**9,
    ),
    Variable(
        "TFM_MAX_PUBLISHED",
        "max_published",
        "runs that the app publishes at a time, each of some MB, for watchers without a session",
        "20; 0 with `TFM_LOGIN_TO_WATCH=1`",
        "none can be published",
        whole,
    ),
    Variable(
        "TFM_RECORDED_ONLY",
        "recorded_only",
        "1 shows the recorded runs and nothing else, without PyTorch; see docs/deploy.md",
        "0",
        "",
        switch,
    ),
    Variable(
        "TFM_PUBLIC",
        "public",
        "1 for a server that strangers reach: runs belong to those who began them, and limits "
        "get the defaults said here",
        "0",
        "",
        switch,
    ),
    Variable(
        "TFM_OPEN",
        "open",
        "1 lists the runs of all visitors for everybody",
        "1; public: 0",
        "one's own are listed, and another's opens by its link",
        switch,
        public=False,
    ),
    Variable(
        "TFM_HOST_KEY",
        "host_key",
        "the key with which the host may do what only a run's owner may; 16 characters or more",
        "none",
        "",
        key,
    ),
    Variable(
        "TFM_LOGIN_TO_WATCH",
        "login_to_watch",
        "1 shows nothing to who is not logged in; see docs/deploy.md on logins",
        "0: where people log in, anybody may watch",
        "",
        switch,
    ),
    Variable(
        "TFM_MAY_START",
        "may_start",
        "who of those who log in may start runs, by e-mail address or domain: "
        "`ann@example.org @example.com`",
        "everybody who is logged in",
        "",
        people,
    ),
    Variable(
        "TFM_ADMINS",
        "admins",
        "who of those who log in may do what only a run's owner may, by e-mail address",
        "none",
        "",
        addresses,
    ),
    Variable(
        "TFM_FRAME_ANCESTORS",
        "frame_ancestors",
        "the sites that may show the app in a frame, as a Content-Security-Policy says it: "
        "`'self' https://example.org`",
        "every site; public: `'self'`",
        "",
        sources,
        public="'self'",
    ),
    Variable(
        "TFM_BACKEND",
        "backend",
        "who trains the runs: `local` (processes of this machine), `ray` or `slurm` (jobs of a "
        "cluster, see docs/cluster.md)",
        "`ray` where `TFM_RAY_ADDRESS` is set, else `local`",
        "",
        backend,
    ),
    Variable(
        "TFM_RAY_ADDRESS",
        "ray_address",
        "the dashboard of the head of a Ray cluster: `http://HOST:8265`",
        "none",
        "",
        address,
    ),
    Variable(
        "TFM_SLURM_OPTIONS",
        "slurm_options",
        "what `sbatch` is told of every job: `--partition=gpu --time=4:00:00`",
        "none",
        "",
        options,
    ),
    Variable(
        "TFM_CLUSTER_PYTHON",
        "cluster_python",
        "the command that is Python on the machines of the cluster",
        "this server’s own",
        "",
        command,
    ),
)

_ADDRESS = re.compile(r"https?://[a-z0-9_.-]+(:\d{1,5})?(/[\w./-]*)?", re.IGNORECASE | re.ASCII)
_OPTION = re.compile(r"--[a-z][a-z0-9-]*(=.+)?", re.ASCII)

_SOURCE = re.compile(
    r"\*|'self'|'none'|https?:|https?://(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:(\d{1,5}|\*))?",
    re.IGNORECASE | re.ASCII,
)
_PEOPLE = re.compile(r"[^\s@<>]*@[a-z0-9-]+(\.[a-z0-9-]+)*")
_PROTOCOL = re.compile(r"[a-z][a-z0-9+-]*", re.ASCII)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?(?:([kmgt])(i)?)?b?", re.IGNORECASE | re.ASCII)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
