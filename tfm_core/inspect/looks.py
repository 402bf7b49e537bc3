"""What a model of pictures made of one picture at each time of its training, and where it looked.

torch is imported where it is needed, so that a page that imports this stays quick to appear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.config import Experiment, ViTConfig
from tfm_core.inspect.attention.rollout import rollout, to_patches
from tfm_core.inspect.attention.trained import inputs_of, model_of, no_checkpoint
from tfm_core.inspect.readings import kept_models
from tfm_core.probe.labels import modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from tfm_core.models.build import Model

Array = npt.NDArray[Any]
MAX_CLASSES = 12
"""Of how many classes a bar each can be shown beside a drawing."""


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """S times of a training, the last one last.

    steps: of the weights. shares: (S, classes), probabilities. heads: (S, L, H, side, side), what
    the classifier's token, or the mean of all where there is none, takes from each patch. rollout:
    (S, side, side), the same through all layers at once.
    """

    steps: tuple[int, ...]
    shares: Array
    heads: Array
    rollout: Array


def reads_drawings(experiment: Experiment) -> bool:
    """Return whether a model tells apart grey pictures of a few classes, as one can draw them."""
    task = experiment.task
    channels = task.picture_shape[0] if task.picture_shape else 0
    return channels == 1 and 0 < len(task.class_names) <= MAX_CLASSES


def looks(run: Run, picture: npt.NDArray[np.uint8]) -> Looks:
    """Look at a picture uint8 (C, height, width) with all weights that a run has kept.

    Where the last checkpoint is younger than these, it is the last one. Raises ValueError, in a
    sentence, where the run learned no pictures or has no weights at all.
    """
    run.experiment.model_as(ViTConfig, N_("This run learned sentences; it reads no pictures."))
    (images,) = inputs_of(run, {}, picture)
    kept = models_of(run)
    found = [_look(run.experiment, model, images) for _step, model in kept]
    shares, heads, rolled = (np.stack(part) for part in zip(*found, strict=True))
    return Looks(tuple(step for step, _model in kept), shares, heads, rolled)


def models_of(run: Run) -> list[tuple[int, Model]]:
    """Return the models of a run by step, ascending. Raises ValueError where there is none."""
    kept = kept_models(run)
    if run.has_checkpoint:
        model, step = model_of(run)
        if not kept or step > kept[-1][0]:
            kept.append((step, model))
    if not kept:
        raise StudentError(no_checkpoint(run))
    return kept


def _look(experiment: Experiment, model: Model, images: Any) -> tuple[Array, Array, Array]:
    import torch

    from tfm_core.probe.capture import capture

    (names,) = modules_by_kind(experiment).values()
    with torch.inference_mode(), capture(model, only={"weights"}) as cache:
        shares = model(images).float().softmax(-1)[0].numpy()
    kept = cache.of("weights")
    layers = np.stack([kept[name][0].float().numpy() for name in names])  # (L, H, T, T)
    is_cls = experiment.has_cls
    heads = np.stack(
        [np.stack([to_patches(head, has_cls=is_cls) for head in layer]) for layer in layers]
    )
    reached = rollout(list(layers), has_residual=experiment.model_as(ViTConfig).has_residuals)
    return shares, heads, to_patches(reached, has_cls=is_cls)
