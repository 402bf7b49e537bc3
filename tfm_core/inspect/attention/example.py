"""One example as a model saw it at one step: tokens or picture, maps cut to size, answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfm_core.choices.config import Experiment
from tfm_core.probe import masks as probe_masks
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.probe.types import Array, Bools, Probe, Snapshot
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from tfm_core.probe.capture import ActivationCache


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """What is shown of one example.

    item: an entry of the probe, or of the user's own example (``tgt``: the model's own answer;
    ``truth``: the solution, if any). attention: module name -> (H, Q, K). masks: module name ->
    bool (Q, K), True = may attend. picture: uint8 (C, height, width). probabilities: (classes,).
    answer: the predicted target tokens; confidence: (T,), of each.
    """

    step: int
    item: Mapping[str, Any]
    attention: Mapping[str, Array]
    masks: Mapping[str, Bools]
    picture: Array | None = None
    probabilities: Array | None = None
    answer: tuple[str, ...] | None = None
    answer_text: str | None = None
    confidence: Array | None = None

    def maps(self, modules: Sequence[str]) -> Array:
        """Return the maps of several layers as (L, H, Q, K). Raises ValueError where one lacks."""
        lacking = [name for name in modules if name not in self.attention]
        if lacking:
            raise StudentError("This snapshot has no attention of {lacking}.", lacking=lacking[0])
        return np.stack([self.attention[name] for name in modules])

    def may_attend(self, modules: Sequence[str]) -> Bools:
        """Return the masks of several layers as bool (L, Q, K), True = may attend."""
        return np.stack([self.masks[name] for name in modules])


def example_of(experiment: Experiment, probe: Probe, snapshot: Snapshot, index: int) -> Example:
    """Return an example of the probe at a snapshot, without maps where the probe keeps none of it.

    Raises StudentError if they do not fit.
    """
    item, is_attended = probe.items[index], index < len(probe.attended)
    misfit = N_(
        "The snapshot of step {step:,} does not match this run's examples.", step=snapshot.step
    )
    if (
        snapshot.probabilities is not None and not experiment.task.class_names
    ):  # of classes, not of words
        raise StudentError(misfit)
    try:
        return Example(
            step=snapshot.step,
            item=item,
            attention=cut(
                experiment,
                item,
                {name: maps[index] for name, maps in snapshot.attention.items() if is_attended},
            ),
            masks=_masks(experiment, probe, snapshot, index) if is_attended else {},
            picture=None if probe.images is None else probe.images[index],
            probabilities=_row(snapshot.probabilities, index),
            answer=None if snapshot.tokens is None else tuple(snapshot.tokens[index]),
            answer_text=None if snapshot.texts is None else snapshot.texts[index],
            confidence=_row(snapshot.confidence, index),
        )
    except (IndexError, KeyError, TypeError):
        raise StudentError(misfit) from None


def cut(
    experiment: Experiment, item: Mapping[str, Any], attention: Mapping[str, Array]
) -> dict[str, Array]:
    """Return one example's maps (H, Q, K) without padding. Raises ValueError when rows lack."""
    maps: dict[str, Array] = {}
    for names in modules_by_kind(experiment).values():
        for name in names:
            if name not in attention:
                continue
            sizes = axes(experiment, item, name).shape
            map_ = attention[name][:, : sizes[0], : sizes[1]]
            if map_.shape[1:] != sizes:
                raise StudentError(
                    "{name} has a {rows} × {columns} map; this example needs {n_query} × {n_key}.",
                    name=name,
                    rows=map_.shape[1],
                    columns=map_.shape[2],
                    n_query=sizes[0],
                    n_key=sizes[1],
                )
            maps[name] = map_
    return maps


def captured(
    experiment: Experiment, item: Mapping[str, Any], cache: ActivationCache
) -> dict[str, Any]:
    """Return ``item``, ``attention`` and ``masks`` of a single example. Raises as ``cut``."""
    maps = {name: weights[0].float().numpy() for name, weights in cache.of("weights").items()}
    applied = cache.masks()
    attention = cut(experiment, item, maps)
    sizes = {name: axes(experiment, item, name).shape for name in attention}
    masks = {name: probe_masks.cut(applied[name], 0, size) for name, size in sizes.items()}
    return {"item": item, "attention": attention, "masks": masks}


def _masks(
    experiment: Experiment, probe: Probe, snapshot: Snapshot, index: int
) -> dict[str, Bools]:
    item = probe.items[index]
    return {
        name: probe_masks.cut(snapshot.masks[name], index, axes(experiment, item, name).shape)
        for name in snapshot.attention
    }


def _row(array: Array | None, index: int) -> Array | None:
    return None if array is None else np.asarray(array[index])
