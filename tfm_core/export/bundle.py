"""A run as one zip: its settings, metrics, weights and model.

Everything in it is read without the app, and ``take_in`` makes a run of it again. No member is a
pickle; weights are safetensors.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import save

from tfm_core.choices.config import Experiment, TunedConfig
from tfm_core.data.tasks import data_shape
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.sets import UserSet
from tfm_core.export import layout, readme
from tfm_core.export.exports import Progress
from tfm_core.made_with import versions
from tfm_core.plots import export
from tfm_core.probe.types import Array
from tfm_core.reading import Unreadable, content_of, is_plain, open_tensors
from tfm_core.runs.curves import Curves, Series
from tfm_core.runs.run import Run
from tfm_core.runs.snapshots import snapshot_path, weights_path
from tfm_core.sentences import N_, Paragraph, Say, StudentError
from tfm_core.trace.source.carried import Carried, carried
from tfm_core.trace.source.file import source_code

MAX_SNAPSHOT_BYTES = 12_000_000
"""Bytes of snapshots, and as many of weights over the training, that a zip holds: of more, some."""

_MAX_EVENTS = 2**26
_LAST, _BEST = (f"checkpoints/{name}/checkpoint.safetensors" for name in ("last", "best"))
_STORED = (".safetensors",)  # numbers do not become smaller


def bundle(
    run: Run,
    progress: Progress | None = None,
    *,
    with_set: bool = False,
    with_labels: bool = True,
    say: Say = str,
) -> bytes:
    """Return the zip of a run. Raises ValueError for a run that is damaged.

    with_set: include the custom set that it learned from. with_labels:
    so do tags, note, group and what the set is called, which are for its owner's eyes.
    say: translates the sentences of README.txt.
    """
    if run.problem is not None:
        raise StudentError(run.problem)
    if run.experiment.training is None and run.experiment.task.name != "foreign":
        raise StudentError(Paragraph("pretrained/no-zip"))
    if isinstance(run.experiment.task, TunedConfig):
        raise StudentError(Paragraph("pretrained/no-tuned-zip"))
    tell = progress or (lambda share, words: None)
    target = io.BytesIO()
    with (
        sets.below(run.folder.parent),
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        for share, words, name, content in _members(
            run, with_set=with_set, with_labels=with_labels, say=say
        ):
            tell(share, words)
            file.writestr(_entry(name, run), content)
    tell(1.0, N_("Done."))
    return target.getvalue()


def file_name(run: Run) -> str:
    """Return the file name: the run's name in plain characters, and its id."""
    plain = "".join(c if c.isalnum() and c.isascii() else "-" for c in run.meta.name.lower())
    words = "-".join(filter(None, plain.split("-")))[:40]
    return f"{words or 'run'}-{run.id[:8]}.zip"


def own_set(run: Run) -> UserSet | None:
    """Return the set that can be included with a run, or None. Never raises.

    A set that comes with the app is everywhere.
    """
    if run.problem is not None:
        return None
    with sets.below(run.folder.parent):
        folder = sets.folder_of(sets.added_of(run.experiment.task))
    own = None if folder is None else sets.opened(folder)
    return None if own is None or own.problem is not None else own


def chosen_snapshots(run: Run) -> tuple[list[Path], int]:
    """Return the files of snapshots and weights that a zip holds, and how many it leaves out.

    Where they are too large, every second, third … is taken, the first and the last among them.
    """
    snapshots = [snapshot_path(run.folder, step) for step in run.snapshot_steps()]
    weights = [weights_path(run.folder, step) for step in run.weight_steps()]
    chosen = [*_spread(snapshots), *_spread(weights)]
    return chosen, len(snapshots) + len(weights) - len(chosen)


def estimate(run: Run) -> int:
    """Estimate the bytes of a run's zip. Never raises."""
    whole = [run.folder / _LAST, run.folder / "probe.safetensors", *chosen_snapshots(run)[0]]
    return sum(_size(path) for path in whole) + _size(run.folder / "events.jsonl") // 3


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _spread(paths: list[Path]) -> list[Path]:
    total = sum(_size(path) for path in paths)
    every = -(-total // MAX_SNAPSHOT_BYTES) or 1
    return paths if every == 1 else list(dict.fromkeys([*paths[::every], paths[-1]]))


def _entry(name: str, run: Run) -> zipfile.ZipInfo:
    moment = datetime.fromisoformat(run.meta.created).timetuple()[:6]
    info = zipfile.ZipInfo(name, date_time=max(moment, (1980, 1, 1, 0, 0, 0)))
    info.external_attr = 0o644 << 16
    is_stored = name.endswith(_STORED) or name.startswith(layout.SET)
    info.compress_type = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
    return info


_Member = tuple[float, str, str, bytes]


def _members(run: Run, *, with_set: bool, with_labels: bool, say: Say) -> Iterator[_Member]:
    """Yield share, what is done, name and content of each member."""
    experiment = run.experiment
    snapshots, n_left_out = chosen_snapshots(run)
    tensors, metadata = _checkpoint(run.folder / _LAST)
    yield 0.0, _SETTINGS, layout.EXPERIMENT, _json(json.loads(experiment.model_dump_json()))
    yield 0.05, _SETTINGS, layout.FACTS, _json(_facts(run) | (_labels(run) if with_labels else {}))
    yield 0.1, _SETTINGS, layout.METRICS, export.csv(curves_table(run.curves()))
    data = _carried(run)
    if experiment.training is not None:
        model = source_code(experiment.model, data_shape(experiment), data=data)
        yield 0.2, N_("Writing the model file"), layout.MODEL, model.encode()
    if tensors:
        yield from _weights(run, tensors, metadata)
    yield 0.5, _NUMBERS, layout.EVENTS, _content(run.folder / "events.jsonl") or b""
    for name in (layout.PROBE, layout.PICTURES, layout.BEST):
        if (content := _content(run.folder / name.removeprefix("run/"))) is not None:
            yield 0.55, _NUMBERS, name, content
    yield from _snapshots(snapshots)
    if with_set and (set_id := sets.added_of(experiment.task)):
        for name, content in sets.files_of(sets.as_prepared(sets.find(set_id))).items():
            yield 0.82, N_("Writing the data"), layout.SET + name, content
    elif with_labels:  # it says what the set is called
        for name, content in _vocabulary(experiment).items():
            yield 0.82, _NUMBERS, layout.VOCABULARY + name, content
    text = readme.readme_text(
        run,
        data,
        has_weights=bool(tensors),
        n_left_out=n_left_out,
        has_set=with_set,
        say=say,
    )
    yield 0.98, _SETTINGS, layout.README, text.encode()


def _weights(run: Run, tensors: dict[str, Array], metadata: dict[str, str]) -> Iterator[_Member]:
    experiment = run.experiment
    yield 0.3, _NUMBERS, layout.WEIGHTS, save(_renamed(experiment, tensors), metadata)
    if _is_averaged(tensors):
        trained = save(_renamed(experiment, tensors, "model/"), metadata)
        yield 0.35, _NUMBERS, layout.TRAINED_WEIGHTS, trained
    states = {name: value for name, value in tensors.items() if name.startswith("optimizer/")}
    if states:
        yield 0.4, _NUMBERS, layout.OPTIMISER, save(states)
    if experiment.trained.keeps_best:
        best, of_best = _checkpoint(run.folder / _BEST)
        if best:
            yield 0.45, _NUMBERS, layout.BEST_WEIGHTS, save(_renamed(experiment, best), of_best)


def _snapshots(paths: list[Path]) -> Iterator[_Member]:
    for number, path in enumerate(paths):
        folder = layout.SNAPSHOTS if path.parent.name == "snapshots" else layout.KEPT_WEIGHTS
        if (content := _content(path)) is not None:
            yield 0.6 + 0.2 * number / len(paths), _SNAPSHOTS, folder + path.name, content


_SETTINGS = N_("Writing settings and metrics")
_NUMBERS = N_("Writing the weights")
_SNAPSHOTS = N_("Writing the snapshots")


def _facts(run: Run) -> dict[str, Any]:
    """Return the facts of a run that the app needs besides its experiment, without its owner."""
    meta, status = run.meta, run.status
    return {
        "format": layout.FORMAT,
        "versions": versions(),
        "id": run.id,
        "name": meta.name,
        "created": meta.created,
        "seed": run.experiment.seed,
        "device": status.device,
        "threads": meta.threads,
        "preset": meta.preset,
        "state": status.state,
        "reason": None if status.reason is None else str(status.reason),
        "step": status.step,
        "total_steps": status.total_steps,
        "epoch": status.epoch,
        "seconds": status.seconds,
    }


def _labels(run: Run) -> dict[str, Any]:
    """Return the owner's tags, note and group."""
    labels, own = run.labels, own_set(run)
    data = own.name if own is not None else "" if run.origin is None else run.origin.data
    return {"tags": list(labels.tags), "note": labels.note, "group": labels.group, "data": data}


def _carried(run: Run) -> Carried | None:
    """Return what the model file carries; None where the pictures of a run are missing here."""
    try:
        return carried(run.experiment)
    except StudentError:
        return None


def _vocabulary(experiment: Experiment) -> dict[str, bytes]:
    """Return the vocabulary of a custom set, {} where it is not here."""
    try:
        set_id = sets.added_of(experiment.task)
        return sets.vocabulary_of(sets.find_vocabulary(set_id)) if set_id else {}
    except StudentError:
        return {}


def _checkpoint(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the tensors of a checkpoint and its metadata; nothing without one.

    Nothing, too, where training broke down and its weights are no numbers: they answer nothing.
    Raises ValueError where it is damaged.
    """
    if not is_plain(path):
        return {}, {}
    try:
        with open_tensors(path) as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
    except (FileNotFoundError, Unreadable):
        raise StudentError("This run's last checkpoint is damaged.") from None
    are_numbers = all(np.isfinite(value).all() for value in tensors.values())
    return (tensors, metadata) if are_numbers else ({}, {})


def _is_averaged(tensors: dict[str, Array]) -> bool:
    return any(name.startswith("average/") for name in tensors)


def _renamed(
    experiment: Experiment, tensors: dict[str, Array], head: str | None = None
) -> dict[str, Array]:
    """Return the weights of a checkpoint under their names in the model file, in full precision.

    head: how their names begin; None for those that count: the averaged ones, where there are any.
    Runs that come with the app keep theirs in half precision.
    """
    head = head or ("average/" if _is_averaged(tensors) else "model/")
    own = [name.removeprefix(head) for name in tensors if name.startswith(head)]
    names = layout.weight_names(experiment, sorted(own))
    return {new: tensors[f"{head}{old}"].astype(np.float32) for old, new in names.items()}


def _content(path: Path) -> bytes | None:
    try:
        return content_of(path, most=_MAX_EVENTS)
    except (FileNotFoundError, Unreadable):
        return None


def _json(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, ensure_ascii=False, indent=2) + "\n").encode()


def curves_table(curves: Curves) -> pd.DataFrame:
    """Return all recorded series, one below the other; ``split`` is "train" for the batches.

    Validation of averaged weights, where there are any, is "validation-average".
    """
    parts = [
        _frame("train", curves.steps),
        _frame("validation", curves.validation),
        _frame("validation-average", curves.averaged),
        _frame("test", curves.test),
    ]
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    rows = [part for part in parts if len(part)]
    whole = pd.concat(rows) if rows else parts[0]
    return whole.reindex(columns=names).astype({"step": "int64"})


def _frame(split: str, series: Series) -> pd.DataFrame:
    columns = {name: series[name] for name in series.columns}
    return pd.DataFrame({"split": [split] * len(series), **columns})
