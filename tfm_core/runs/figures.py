"""The final figures of a run, as plain values and as text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tfm_core.reading import Unreadable, open_plain
from tfm_core.runs.curves import record_of
from tfm_core.runs.disk.atomic import CachedReader
from tfm_core.runs.run import Run
from tfm_core.runs.thinned import ThinnedReader

_TAIL = 2**16
"""Bytes at the end of a run's events in which its last measurement nearly always is."""


def last_measured(run: Run) -> dict[str, Any] | None:
    """Return the last measurement on test examples, else on validation ones; None without one.

    It has the values of ``events.Measured`` that were written, ``split`` among them. Only the end
    of the events is read, and only where they changed. Never raises.
    """
    try:
        return _LAST.of(run.folder, "events.jsonl")
    except (OSError, Unreadable):
        return None


def _last_in(path: Path) -> dict[str, Any] | None:
    with os.fdopen(open_plain(path), "rb") as file:
        file.seek(max(0, file.seek(0, 2) - _TAIL))
        tail = file.read(_TAIL)
    if b'"resumed"' not in tail:  # else some of it may no longer count
        lines = tail[: tail.rfind(b"\n") + 1].splitlines()[len(tail) == _TAIL :]
        records = [record_of(line) for line in lines if b'"measured"' in line]
        newest = {record["split"]: record for record in records if record and "split" in record}
        found = newest.get("test", newest.get("validation"))
        if found is not None and "accuracy" in found:
            return found
    curves = ThinnedReader(path.parent).read()
    for split, series in (("test", curves.test), ("validation", curves.unseen)):
        if series.last("accuracy") is not None:
            return {"split": split, **{name: series.last(name) for name in series.columns}}
    return None


_LAST = CachedReader(_last_in, largest=2**40, most=16_384)


def figures(run: Run) -> dict[str, Any]:
    """Return how a run ended: state, steps, seconds, and the last measurement of each split.

    averaged: the validation of averaged weights, where there are any. tested: which weights the
    figures of the test are of, "best", "last" or "average"; None before it.
    """
    status, curves = run.status, run.thinned_curves()
    measured = {
        split: {
            name: series.last(name) for name in ("step", "loss", "accuracy", "sequence_accuracy")
        }
        for split, series in (
            ("validation", curves.validation),
            ("averaged", curves.averaged),
            ("test", curves.test),
        )
        if len(series)
    }
    training = run.experiment.training
    return {
        "id": run.id,
        "folder": str(run.folder),
        "name": run.meta.name,
        "state": status.state,
        "reason": status.reason,
        "step": status.step,
        "total_steps": status.total_steps,
        "seconds": status.seconds,
        "n_parameters": curves.started.get("n_parameters"),
        "train_loss": curves.steps.last("loss"),
        **measured,
        "tested": curves.tested("last" if training is None else training.tested),
    }


def summary(values: dict[str, Any]) -> str:
    """Return ``figures`` as lines for a person."""
    lines = []
    names = {"averaged": "validation of the averaged weights"}
    for split in ("validation", "averaged", "test"):
        if split in values:
            part = values[split]
            whole = part["sequence_accuracy"]
            more = "" if whole is None else f", whole sequences {whole:.1%}"
            of = _weights_words(values) if split == "test" else ""
            figures = f"loss {part['loss']:.4f}, accuracy {part['accuracy']:.1%}{more}"
            lines.append(f"{names.get(split, split)}{of}: {figures}")
    lines.append(f"{values['step']:,} steps in {values['seconds']:.1f} s, run {values['id']}")
    return "\n".join(lines)


def _weights_words(values: dict[str, Any]) -> str:
    """Return which weights were tested."""
    step = f"{int(values['test']['step']):,}"
    if values["tested"] == "average":
        return f" of the average of the weights up to step {step}"
    of = f" of the weights of step {step}"
    return f"{of}, best by validation" if values["tested"] == "best" else of
