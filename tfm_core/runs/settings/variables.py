"""Every ``TFM_`` variable: what it means, its unit too, and what 0 means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tfm_core.runs.settings.values import (
    address,
    addresses,
    backend,
    command,
    device,
    folder,
    hosts,
    key,
    options,
    people,
    size,
    sources,
    store_address,
    switch,
    whole,
)


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
        "processes that wait with everything loaded, so that a start is felt at once",
        "1; 0 on small machines",
        "none waits; a start takes some seconds",
        whole,
    ),
    Variable(
        "TFM_WARM_DEVICE",
        "warm_device",
        "the device, such as `cuda:0`, on which they have learned a step before they wait, so that "
        "a start there is felt at once, too; each then holds some hundred MB of its memory",
        "none: they hold no memory of a GPU, and a run on one waits for its start",
        "",
        device,
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
        "TFM_HOSTS",
        "hosts",
        "names under which the app is reached through this computer's loopback address, by a proxy "
        "that adds no `X-Forwarded-` or `Forwarded` header: `app.example.org *.example.com`; `*` "
        "allows every name; see docs/security.md",
        "`localhost` and this computer's own",
        "",
        hosts,
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
