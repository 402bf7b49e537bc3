"""One picture: what a model made of it at each kept step of its training, and why.

Rollout (Abnar & Zuidema 2020, section 3) multiplies layers, each (A + I) / 2 because the residual
connection is half of it. Relevance (Chefer et al. 2021, equations 5 and 6) weights each map by the
gradient of the class score, keeps the positive part, averages heads and adds R <- R + A R. Without
residuals both use A alone. Attention is not explanation (Jain & Wallace 2019; but see Wiegreffe &
Pinter 2019). torch is imported late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Choice, Experiment, ImageTaskConfig, ViTConfig
from tfm_core.inspect.attention.trained import (
    Picture,
    cached_by_weights,
    inputs_of,
    model_of,
    models_by_step,
    models_of,
)
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.types import Array, Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError, words

if TYPE_CHECKING:
    from torch import Tensor, nn

    from tfm_core.models.build import Model


def rollout(attention: Sequence[Floats], *, has_residual: bool = True) -> Floats:
    """Return (T, T): the share of each input token in each output token; rows sum to 1.

    attention: one (H, T, T) a layer, from the input up; heads are averaged. Raises StudentError
    without layers, and for cross-attention.
    """
    reached: Floats = rollout_by_layer(attention, has_residual=has_residual)[-1]
    return reached


def rollout_by_layer(attention: Sequence[Floats], *, has_residual: bool = True) -> Floats:
    """Return (L, T, T): the rollout up to each layer. Arguments and errors as for ``rollout``."""
    if not len(attention):
        raise StudentError("Rollout needs at least one attention layer.")
    reached: list[Floats] = []
    for heads in attention:
        if heads.ndim != 3 or heads.shape[1] != heads.shape[2]:
            raise StudentError(
                "Rollout needs self-attention of shape (H, T, T), not {shape}.", shape=heads.shape
            )
        mean = np.asarray(heads, np.float64).mean(0)
        step = mean
        if has_residual:  # (A + I) / 2; a row of zeros keeps to itself
            step = (mean + np.eye(len(mean))) / 2
            step /= step.sum(-1, keepdims=True)
        reached.append(step @ reached[-1] if reached else step)
    return np.stack(reached)


def to_patches(tokens: Floats, *, has_cls: bool) -> Floats:
    """Return (side, side): what the classifier gets from each patch.

    tokens: (T, T), row = output token. It reads the CLS token's row, without its own column, or the
    mean of all rows.
    """
    row = tokens[0, 1:] if has_cls else tokens.mean(0)
    side = round(float(np.sqrt(len(row))))
    if side**2 != len(row):
        raise StudentError("{n_row} patches do not form a square.", n_row=len(row))
    return np.asarray(row).reshape(side, side)


def relevance(
    model: nn.Module, inputs: tuple[Tensor, ...], target: int, *, has_residual: bool = True
) -> Tensor:
    """Return (T, T): the relevance of each input token for class ``target``, by output token.

    inputs: of one example, for a model with one answer; read the CLS token's row, or the mean.
    """
    import torch

    from tfm_core.probe.capture import capture

    with capture(model, only={"weights"}, with_grad=True) as cache:
        logits: Tensor = model(*inputs)
    layers = list(cache.of("weights").values())
    gradients = torch.autograd.grad(logits.flatten()[target], layers)
    first = layers[0]
    reached = torch.eye(first.size(-1), dtype=first.dtype, device=first.device)
    for weights, gradient in zip(layers, gradients, strict=True):
        passed_on = (gradient[0] * weights[0].detach()).clamp(min=0).mean(0) @ reached
        reached = reached + passed_on if has_residual else passed_on
    return reached


EXPLANATIONS = {
    name: Choice(**words(f"choices/explanations/{name}"))
    for name in ("attention", "rollout", "relevance")
}
_TEXT = N_("This run reads text; only pictures have patches to explain.")


@cached_by_weights
def explained(
    run: Run, picture: Picture, target: int | None = None
) -> tuple[int, int, Floats, dict[str, Floats]]:
    """Explain what the last checkpoint of a run says about a picture uint8 (C, height, width).

    Return the step, the class that is explained, the probabilities (classes,), and by the names of
    EXPLANATIONS maps (side, side), not negative. target: the class to explain, None for the
    predicted one. Cached. Raises StudentError without a checkpoint or for a wrong shape or class.
    """
    from tfm_core.probe.capture import capture

    run.experiment.task_as(ImageTaskConfig, _TEXT)
    (images,) = inputs_of(run, {}, picture)
    model, step = model_of(run)
    with capture(model, only={"weights"}) as cache:
        probabilities = model(images).softmax(-1)[0].numpy()
    target = int(probabilities.argmax()) if target is None else target
    if not 0 <= target < len(probabilities):
        raise StudentError(
            "There is no class {target}: classes are 0 to {last}.",
            target=target,
            last=len(probabilities) - 1,
        )
    modules = modules_by_kind(run.experiment)["patches"]
    has_residual = run.experiment.model_as(ViTConfig).has_residuals
    attention = [cache[f"{name}.weights"][0].numpy() for name in modules]
    cache.clear()
    tokens = {
        "attention": attention[-1].mean(0),
        "rollout": rollout(attention, has_residual=has_residual),
        "relevance": relevance(model, (images,), target, has_residual=has_residual).numpy(),
    }
    is_cls = run.experiment.has_cls
    maps = {name: to_patches(values, has_cls=is_cls) for name, values in tokens.items()}
    return step, target, probabilities, maps


AnswersByStep = tuple[tuple[int, ...], npt.NDArray[np.float32]]


def answers_by_step(run: Run, picture: Picture) -> AnswersByStep:
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


_NO_PICTURES = N_("This run was trained on sentences, not pictures.")
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


def picture_history(run: Run, picture: Picture) -> PictureHistory:
    """Look at a picture uint8 (C, height, width) with all kept weights and the last checkpoint.

    Raises StudentError for other runs, or without weights.
    """
    run.experiment.model_as(ViTConfig, _NO_PICTURES)
    (images,) = inputs_of(run, {}, picture)
    kept = models_of(run)
    found = [_look(run.experiment, model, images) for _step, model in kept]
    shares, heads, rolled = (np.stack(part) for part in zip(*found, strict=True))
    return tuple(step for step, _model in kept), shares, heads, rolled


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
