"""What a model made of one picture at each kept step of its training, and where it looked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core import byte_cache
from tfm_core.choices.config import Experiment, ImageTaskConfig, ViTConfig
from tfm_core.inspect.attention.explanations import rollout, to_patches
from tfm_core.inspect.attention.inputs import inputs_of
from tfm_core.inspect.attention.trained import model_of, no_checkpoint
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.types import Array
from tfm_core.runs.record.weights import weights_path
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from tfm_core.models.build import Model


AnswersByStep = tuple[tuple[int, ...], npt.NDArray[np.float32]]


def answers_by_step(run: Run, picture: npt.NDArray[np.uint8]) -> AnswersByStep:
    """Return the steps with kept weights, ascending, and (steps, classes): their answers.

    picture: uint8 (C, height, width). Damaged weights are left out. Raises StudentError for other
    runs, without weights, or for another shape.
    """
    import torch

    run.experiment.task_as(ImageTaskConfig, _NO_PICTURES)
    (images,) = inputs_of(run, {}, picture)
    models = models_by_step(run)
    if not models:
        raise StudentError("This run saved no weights during training.")
    with torch.inference_mode():
        logits = torch.cat([model(images) for _step, model in models])
    answers: npt.NDArray[np.float32] = logits.float().softmax(-1).numpy()
    return tuple(step for step, _model in models), answers


def right_since(found: AnswersByStep, answer: int) -> int | None:
    """Return the step from which on a run read a picture as ``answer``, None where it doesn't."""
    steps, answers = found
    since = None
    for step, is_right in zip(steps, answers.argmax(-1) == answer, strict=True):
        since = (step if since is None else since) if is_right else None
    return since


def model_at(run: Run, step: int) -> Model:
    """Return the model with the kept weights of a step, cached. Raises StudentError."""
    try:
        changed = weights_path(run.folder, step).stat().st_mtime_ns
    except OSError:
        raise StudentError("Step {step:,} has no saved weights.", step=step) from None
    return _model(str(run.folder), step, changed)


def models_by_step(run: Run) -> list[tuple[int, Model]]:
    """Return the models of the kept steps, ascending, cached; without damaged weights."""
    found = []
    for step in run.weight_steps():
        try:
            found.append((step, model_at(run, step)))
        except ValueError:  # deleted meanwhile, or damaged
            continue
    return found


@byte_cache.cached
def _model(folder: str, step: int, _changed: int) -> Model:
    import torch

    from tfm_core.training.setup import new_model

    torch.set_num_threads(1)  # OpenMP's waiting threads would take the processor from the training
    run = Run(Path(folder))
    weights = {name: torch.from_numpy(value) for name, value in run.weights(step).items()}
    model = new_model(run.experiment).eval()
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        raise StudentError(
            "The weights of step {step:,} do not fit the model.", step=step
        ) from None
    return model.requires_grad_(False)


_NO_PICTURES = N_("This run learned sentences, not pictures.")
MAX_CLASSES = 12
"""The most classes with a bar beside a drawing."""


PictureHistory = tuple[tuple[int, ...], Array, Array, Array]
"""S steps of a training, the last one last; the probabilities (S, classes); what the answering
token takes from each patch, (S, L, H, side, side), and through all layers, (S, side, side)."""


def reads_drawings(experiment: Experiment) -> bool:
    """Return whether a model classifies grey pictures into a few classes."""
    task = experiment.task
    channels = task.picture_shape[0] if task.picture_shape else 0
    return channels == 1 and 0 < len(task.class_names) <= MAX_CLASSES


def picture_history(run: Run, picture: npt.NDArray[np.uint8]) -> PictureHistory:
    """Look at a picture uint8 (C, height, width) with all kept weights and the last checkpoint.

    Raises StudentError for other runs, or without weights.
    """
    run.experiment.model_as(ViTConfig, _NO_PICTURES)
    (images,) = inputs_of(run, {}, picture)
    kept = models_of(run)
    found = [_look(run.experiment, model, images) for _step, model in kept]
    shares, heads, rolled = (np.stack(part) for part in zip(*found, strict=True))
    return tuple(step for step, _model in kept), shares, heads, rolled


def models_of(run: Run) -> list[tuple[int, Model]]:
    """Return the models of a run by step, ascending. Raises ValueError where there is none."""
    kept = models_by_step(run)
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
