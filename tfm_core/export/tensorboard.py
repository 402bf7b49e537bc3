"""A run as event files that ``tensorboard --logdir`` reads: curves, settings and heads by step.

A zip with one folder a run, so that many, unpacked side by side, are compared there. Wall times
are the run's start and how long it had trained, pauses left out: as it wrote down with each step,
or reckoned by its speed where an older release did not. README.txt and the Text tab say which.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.export import bundle as zips
from tfm_core.export.exports import Progress
from tfm_core.facts.batches import Batches
from tfm_core.plots.png import png
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.curves import Curves, Series
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

MAX_PICTURES = 30
"""Snapshots whose heads are drawn; of more, some, the first and the last among them."""

_CELL = 12  # pixels to a side of an attention weight
_TAGS = {
    "loss": "loss",
    "accuracy": "accuracy",
    "sequence_accuracy": "whole sequences",
    "learning_rate": "learning rate",
    "grad_norm": "gradient norm",
    "balance": "imbalance of experts",
    "examples_per_second": "examples a second",
}

Floats = npt.NDArray[np.float64]


def bundle(run: Run, progress: Progress | None = None) -> bytes:
    """Return a zip with the folder of a run's event file. Raises ValueError."""
    if run.problem is not None:
        raise StudentError(run.problem)
    say = progress or (lambda share, words: None)
    say(0.0, N_("Writing the curves"))
    name = file_name(run).removesuffix(".zip")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events"
        _write(run, path, say)
        content = path.read_bytes()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"{name}/events.out.tfevents.{int(_began(run))}.{run.id[:8]}", content)
        file.writestr(f"{name}/README.txt", about_times(run.curves()) + "\n")
    say(1.0, N_("Done."))
    return target.getvalue()


def file_name(run: Run) -> str:
    """Return the file name."""
    return zips.file_name(run).removesuffix(".zip") + "-tensorboard.zip"


def wall_times(run: Run, curves: Curves, steps: Floats) -> Floats:
    """Return when each of some steps was done, Unix time, (n,): ascending, as the steps are.

    Where the run did not write down how long it had trained, its speed is taken as constant between
    two recorded steps, and all is scaled so that the last one ends when it had trained for as long
    as it says.
    """
    began, series = _began(run), curves.steps
    recorded = series["step"].astype(np.float64)
    if not len(recorded):
        return np.full(len(steps), began, np.float64)
    if not are_reckoned(curves):
        trained_for = np.maximum.accumulate(series["seconds"].astype(np.float64))
        return began + _between(steps, recorded, trained_for)
    speed = series["examples_per_second"].astype(np.float64)
    usual = np.nanmedian(speed) if np.isfinite(speed).any() else np.nan
    speed = np.where(np.isfinite(speed) & (speed > 0), speed, usual)
    of_ours = run.experiment.training is not None
    examples = Batches.of_experiment(run.experiment).examples(recorded) if of_ours else recorded
    took = np.nan_to_num(np.diff(examples, prepend=0.0) / speed)
    seconds = np.cumsum(took)
    trained = run.status.seconds
    if seconds[-1] > 0 and trained > 0:
        seconds *= trained / seconds[-1]
    return began + _between(steps, recorded, seconds)


def are_reckoned(curves: Curves) -> bool:
    """Return whether a run did not write down how long it had trained, with each step."""
    return not np.isfinite(curves.steps["seconds"]).all()


def about_times(curves: Curves) -> str:
    """Return what the wall times of an event file are."""
    if are_reckoned(curves):
        return (
            "Wall times are reckoned, not measured: the start of the run, and from there on the "
            "examples per second that it reported, pauses left out."
        )
    return (
        "Wall times are the start of the run and the seconds that it had trained at each step, as "
        "it wrote them down; pauses and waiting are left out."
    )


def _between(steps: Floats, recorded: Floats, seconds: Floats) -> Floats:
    """Return the seconds at some steps, counted from the beginning before the first known one."""
    from_zero = np.concatenate([[0.0], recorded]), np.concatenate([[0.0], seconds])
    return np.asarray(np.interp(steps, *from_zero), np.float64)


def _began(run: Run) -> float:
    created = run.origin.created if run.origin is not None else run.meta.created
    return datetime.fromisoformat(created).timestamp()


def _write(run: Run, path: Path, say: Progress) -> None:
    """Write one event file, in the order of time."""
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.record_writer import RecordWriter
    from tensorboardX.summary import text

    curves = run.curves()
    file = RecordWriter(str(path))
    try:
        began = _began(run)
        file.write(Event(wall_time=began, file_version="brain.Event:2").SerializeToString())
        for summary in (*_settings(run, curves), text("wall times", about_times(curves))):
            file.write(Event(wall_time=began, summary=summary).SerializeToString())
        events = [*_scalars(run, curves), *_heads(run, curves, say)]
        for wall_time, step, summary in sorted(events, key=lambda one: one[:2]):
            event = Event(wall_time=wall_time, step=step, summary=summary)
            file.write(event.SerializeToString())
        file.flush()
    finally:
        file.close()


def _scalars(run: Run, curves: Curves) -> Iterator[tuple[float, int, Any]]:
    """Yield time, step and summary of each recorded number."""
    from tensorboardX.proto.summary_pb2 import Summary

    splits = {"train": curves.steps, **_unseen(curves)}
    for split, series in splits.items():
        steps = series["step"].astype(np.float64)
        times = wall_times(run, curves, steps)
        for column in series.columns:
            if column not in _TAGS:
                continue
            tag = f"{_TAGS[column]}/{split}"
            for time, step, value in zip(times, steps, series[column], strict=True):
                if np.isfinite(value):
                    one = Summary.Value(tag=tag, simple_value=float(value))
                    yield float(time), int(step), Summary(value=[one])


def _settings(run: Run, curves: Curves) -> tuple[Any, ...]:
    """Return the summaries of the HParams tab: every setting, and which figures to set beside."""
    from tensorboardX.summary import hparams

    values = run.experiment.model_dump()
    flat: dict[str, Any] = {"seed": values.pop("seed")}
    for section, settings in values.items():
        for name, value in (settings or {}).items():
            is_plain = isinstance(value, int | float | str | None)
            flat[f"{section}.{name}"] = value if is_plain else str(value)
    flat.pop("task.text", None)  # a whole text is no setting to sort by
    splits = _unseen(curves)
    columns = ("loss", "accuracy")
    metrics = {
        f"{name}/{split}": None for split, one in splits.items() if len(one) for name in columns
    }
    summaries: tuple[Any, ...] = hparams(flat, metrics)
    return summaries


def _unseen(curves: Curves) -> dict[str, Series]:
    return {
        "validation": curves.validation,
        "validation-average": curves.averaged,
        "test": curves.test,
    }


def _heads(run: Run, curves: Curves, say: Progress) -> Iterator[tuple[float, int, Any]]:
    """Yield the heads of the last layer of each kind, side by side, on the first example."""
    from tensorboardX.proto.summary_pb2 import Summary

    steps = run.snapshot_steps()
    every = -(-len(steps) // MAX_PICTURES) or 1
    chosen = list(dict.fromkeys([*steps[::every], *steps[-1:]]))
    try:
        item = run.probe().items[0]
    except StudentError:  # none was kept, or it is damaged
        return
    times = wall_times(run, curves, np.array(chosen, np.float64))
    for number, (step, time) in enumerate(zip(chosen, times, strict=True)):
        say(0.2 + 0.7 * number / len(chosen), N_("Drawing the heads"))
        try:
            snapshot = run.snapshot(step)
        except StudentError:
            continue
        for kind, modules in modules_by_kind(run.experiment).items():
            weights = snapshot.attention.get(modules[-1])
            if weights is None:
                continue
            n_queries, n_keys = axes(run.experiment, item, modules[-1]).shape
            pixels = tiles(weights[0, :, :n_queries, :n_keys])
            picture = Summary.Image(
                height=pixels.shape[0],
                width=pixels.shape[1],
                colorspace=1,
                encoded_image_string=png(pixels),
            )
            tag = f"attention/{kind}, layer {len(modules)}"
            yield float(time), step, Summary(value=[Summary.Value(tag=tag, image=picture)])


def tiles(maps: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return maps (H, Q, K) of weights 0 to 1 as grey pixels, side by side; 1 is black."""
    shades = np.round(255 * (1 - np.clip(maps.astype(np.float32), 0, 1))).astype(np.uint8)
    large = shades.repeat(_CELL, axis=1).repeat(_CELL, axis=2)
    framed = np.pad(large, ((0, 0), (2, 2), (2, 2)), constant_values=128)
    return np.ascontiguousarray(np.concatenate(list(framed), axis=1))
