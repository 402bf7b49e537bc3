"""The animation of a run: maps of every snapshot, cached."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pages.attention import heads
from pages.attention.selection_link import Selection
from pages.components.heads import Frame, SnapshotAnimation
from pages.i18n import _
from pages.ui import show
from pages.ui.runs import runs_access
from tfm_core.config import Experiment, ImageTaskConfig
from tfm_core.inspect.attention.example import Example, example_of
from tfm_core.inspect.attention.head_labels import HeadLabels
from tfm_core.plots.palette import COLOURS
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run

MAX_VALUES = 2_000_000  # of a whole animation: 4 MB of float16
MAX_POINTS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Film:
    """The animation, and its example and head labels at each step."""

    animation: SnapshotAnimation
    examples: tuple[Example, ...]
    labels: tuple[HeadLabels, ...]


def film_of(
    run: Run, probe: Probe, selection: Selection, steps: tuple[int, ...], step: int
) -> Film | None:
    """Return the animation; None where there is none or it is too large."""
    if selection.example is None or len(steps) < 2:
        return None
    experiment = run.experiment
    item = probe.items[selection.example]
    modules = modules_by_kind(experiment)[selection.kind]
    n_cells = math.prod(axes(experiment, item, modules[0]).shape)
    if len(steps) * len(modules) * experiment.model.n_heads * n_cells > MAX_VALUES:
        return None
    frames, maps, examples, all_labels = [], [], [], []
    for moment in steps:
        try:
            example = example_of(experiment, probe, run.snapshot(moment), selection.example)
            maps.append(example.maps(modules))
        except ValueError:
            continue  # the page reports the problem when that step is chosen
        labels = heads.labels(run, example, selection.kind)
        frames.append(_frame(experiment, example, labels.short))
        examples.append(example)
        all_labels.append(labels)
    if step not in [frame.step for frame in frames]:
        return None
    name = f"{run.id} {selection.kind} {selection.example}"
    animation = SnapshotAnimation(name, frames, np.stack(maps), _curve(run))
    return Film(animation, tuple(examples), tuple(all_labels))


def _frame(experiment: Experiment, example: Example, labels: tuple[str, ...]) -> Frame:
    if example.probabilities is not None:
        best = int(example.probabilities.argmax())
        name = experiment.task_as(ImageTaskConfig).facts.class_names[best]
        share = show.percent(float(example.probabilities[best]))
        words = _("{name}, with {share}", name=name, share=share)
        label = example.item.get("label")
        is_right = None if label is None else best == label
        return Frame(example.step, words, is_right, labels)
    if example.answer is None:
        return Frame(example.step, labels=labels)
    if experiment.task.facts.answer == "text":  # it may go on in many ways: nothing is right
        return Frame(example.step, example.answer_text, labels=labels)
    is_right = tuple(example.answer) == tuple(example.item["tgt"])
    return Frame(example.step, example.answer_text, is_right, labels)


def _curve(run: Run) -> tuple[list[int], list[float], str, str] | None:
    """Return the training loss, its points as dense at the start as the snapshots are."""
    points = runs_access.curves(run).steps
    steps, loss = np.asarray(points["step"]), np.asarray(points["loss"])
    is_finite = np.isfinite(loss)
    steps, loss = steps[is_finite], loss[is_finite]
    if len(steps) < 2:
        return None
    chosen = np.unique(np.geomspace(1, len(steps), MAX_POINTS).astype(int) - 1)
    values = [round(float(value), 4) for value in loss[chosen]]
    return [int(step) for step in steps[chosen]], values, _("Training loss"), COLOURS["train"]
