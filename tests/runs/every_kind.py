"""A store with one run of every kind, each longer than a second: tiny, made by the app's own ways.

"loop" is recorded by a loop of another program whose validation is better than its training;
"killed-loop" is one that was ended from outside.
"""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import torch

import tfm_core
from tests.looking.loops import Writer, named, probe, trained
from tests.pretrained.with_tokenizer import folder_with_tokenizer
from tests.runs.comparing import stopping_at
from tests.runs.waiting import tiny
from tfm_core.choices.config import Experiment
from tfm_core.export import bundle, importer
from tfm_core.export.opening import open_run
from tfm_core.looking.opening import open_look
from tfm_core.runs.fine_tuning import Part, tuned
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.identity import ProcessId, this_host
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RunStore

KINDS = (
    "trained",
    "stopped",
    "failed",
    "interrupted",
    "loop",
    "killed-loop",
    "look",
    "opened",
    "fine-tuned",
    "imported",
    "damaged",
    "newer",
)
SECONDS = 61.0
_GONE = ProcessId(2**22 + 1, this_host(), 1.0)  # no process of this machine


def every_kind(folder: Path) -> dict[str, str]:
    """Fill a folder of runs; return the id of each kind. ``TFM_RUNS_DIR`` must name the folder."""
    store = RunStore(folder, recorded=None)
    runs = dict(zip(KINDS, _made(store), strict=True))
    for kind, run in runs.items():
        store.rename(run.id, kind)
        status = dataclasses.replace(run.status, seconds=SECONDS)
        if kind in ("interrupted", "killed-loop"):
            status = dataclasses.replace(status, state="running").with_process(_GONE)
        write_status(run.folder, status)
    _damage(runs["damaged"])
    _renew(runs["newer"])
    return {kind: run.id for kind, run in runs.items()}


def _made(store: RunStore) -> list[Run]:
    whole = _trained(store, tiny(5, snapshots=2))
    fast = {"learning_rate": 10.0, "optimizer": "sgd", "clip_norm": 0.0, "warmup": 0.0}
    wild = tiny(50, snapshots=2, **fast)  # with norms its numbers would grow slowly, by rounding
    wild = wild.replace(model=wild.model.replace(norm="none").model_dump())
    opened = open_run(folder_with_tokenizer("gpt2", store.root.parent / "gpt2"), store)
    loops = [trained(store, steps=7, every=3, name=name) for name in ("loop", "killed")]
    for loop in loops:
        _improve_validation(loop)
    return [
        whole,
        _trained(store, tiny(5, snapshots=2), stopped_at=3),
        _trained(store, wild),
        _trained(store, tiny(5, snapshots=2), stopped_at=2),
        *loops,
        open_look(tfm_core.look(Writer(), probe(), tokens=named(probe())), store),
        opened,
        _trained(store, _short(tuned(opened, None, Part("lora", 1, 2)))),
        importer.import_run(io.BytesIO(bundle.bundle(whole)), store),
        _trained(store, tiny(2, snapshots=2)),
        _trained(store, tiny(2, snapshots=2)),
    ]


def _trained(store: RunStore, experiment: Experiment, stopped_at: int | None = None) -> Run:
    torch.manual_seed(0)
    run = store.create(experiment)
    execute(run, *(() if stopped_at is None else stopping_at(stopped_at, run)))
    return run


def _short(experiment: Experiment) -> Experiment:
    training = experiment.training.replace(steps=2, snapshots=2, validate_every=2)
    return experiment.replace(training=training.model_dump())


def _improve_validation(run: Run) -> None:
    """Add measurements whose loss is far below that of the batches before them."""
    with (run.folder / "events.jsonl").open("a", encoding="utf-8") as file:
        for step in range(3, 8):
            values = {"event": "measured", "step": step, "split": "validation", "loss": 0.01}
            file.write(json.dumps(values | {"accuracy": 0.9}) + "\n")


def _damage(run: Run) -> None:
    (run.folder / "experiment.json").write_text("{", encoding="utf-8")


def _renew(run: Run) -> None:
    """Let the files say what only a later version of the app knows."""

    def changed(name: str, *path: str, **values: Any) -> None:
        whole = json.loads((run.folder / name).read_text(encoding="utf-8"))
        part = whole
        for key in path:
            part = part[key]
        part.update(values)
        (run.folder / name).write_text(json.dumps(whole), encoding="utf-8")

    changed("experiment.json", "model", family="state-space", n_states=16)
    changed("meta.json", colour="green")
    changed("status.json", state="dreaming")
    with (run.folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"event": "dreamt", "step": 2}) + "\n")
