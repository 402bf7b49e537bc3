"""One picture: a model's answers at each kept step of its training, and their explanations.

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
    at_once,
    cached_by_weights,
    data_of,
    in_all,
    inputs_of,
    model_of,
    models_by_step,
    models_of,
)
from tfm_core.inspect.conclusions import is_clearly_higher
from tfm_core.probe.labels import modules_by_kind, patches_per_side
from tfm_core.probe.types import Array, Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError, joined, words

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor, nn

    from tfm_core.data.image_data import ImageData
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
def explain_picture(
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
    found = [_read_picture(run.experiment, model, images) for _step, model in kept]
    shares, heads, rolled = (np.stack(part) for part in zip(*found, strict=True))
    return tuple(step for step, _model in kept), shares, heads, rolled


def _read_picture(experiment: Experiment, model: Model, images: Any) -> tuple[Array, Array, Array]:
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


N_FIT, N_TRIED = 1000, 400
N_MIN = 40  # where maps are so large that all would take minutes
RIDGE = 1e-2
CLS, MEAN, PATCH, INK = "cls", "mean", "patch", "ink"


def token_conclusion(read: pd.DataFrame, n_tried: int, chance: float) -> Sentence:
    """Return what the tokens know, in sentences. read: of ``token_roles``; chance: its fact."""
    whole = CLS if CLS in read else MEAN
    *_layers, digit, ink = read.to_dict("records")
    gathers, alone = digit[whole], digit[PATCH]
    sentences: list[Sentence] = [
        Paragraph(f"attention/digit-{whole}", whole=gathers, alone=alone, chance=chance)
    ]
    if is_clearly_higher(alone, gathers, n_tried):
        sentences.append(N_("A single patch tells more about the digit."))
    elif not is_clearly_higher(gathers, alone, n_tried):
        sentences.append(N_("With {n} pictures, this difference may be chance.", n=n_tried))
    own, others = max(0.0, ink[PATCH]), max(0.0, ink[whole])
    sentences.append(Paragraph(f"attention/ink-{whole}", own=own, others=others))
    return joined(*sentences)


def reads_patches(experiment: Experiment) -> bool:
    """Return whether an experiment is a Vision Transformer on pictures."""
    return bool(experiment.task.class_names)


@cached_by_weights
def token_roles(run: Run) -> tuple[pd.DataFrame, tuple[float, ...], dict[str, Any]]:
    """Return what is read from which token of the last checkpoint of a Vision Transformer.

    A column a token: cls, mean, patch. A row a depth: the share of validation digits that are read
    before the first layer and after each, of a patch the mean over patches; last INK, the share of
    the variance of a patch's ink that is read after the last layer, the mean over patches. Then the
    share of the last layer's attention from CLS to itself and from patches to CLS, if there is
    CLS; and n_patches, n_fit, n_tried and chance, the share of the most frequent digit, with a note
    on pictures outside the run's splits. Raises StudentError for other runs.
    """
    import pandas as pd

    if not reads_patches(run.experiment):
        raise StudentError("Only a Vision Transformer has patch tokens.")
    data, note = _pictures(run.experiment)
    splits = data.train, data.validation
    n_fit, n_tried = (in_all(run.experiment, n, N_MIN) for n in (N_FIT, N_TRIED))
    images = [split.images[:n] for split, n in zip(splits, (n_fit, n_tried), strict=True)]
    labels = [split.labels[: len(part)].numpy() for split, part in zip(splits, images, strict=True)]
    depths = [_vectors(run, data.normalise(one)) for one in images]
    is_cls = run.experiment.has_cls
    targets = np.eye(int(labels[0].max()) + 1)[labels[0]]

    def right(fit: Floats, test: Floats) -> float:
        return float((_probe(fit, targets, test).argmax(1) == labels[1]).mean())

    digit: dict[str, list[float]] = {CLS: []} if is_cls else {}
    digit |= {MEAN: [], PATCH: []}
    for fit, test in zip(*depths, strict=True):
        if is_cls:
            digit[CLS].append(right(fit[:, 0], test[:, 0]))
        patches = [each[:, int(is_cls) :] for each in (fit, test)]
        digit[MEAN].append(right(*(each.mean(1) for each in patches)))
        of_each = [right(patches[0][:, at], patches[1][:, at]) for at in range(patches[0].shape[1])]
        digit[PATCH].append(float(np.mean(of_each)))
    side = patches_per_side(run.experiment)
    ink = _ink(depths[0][-1], depths[1][-1], *(_inks(one, side) for one in images), is_cls=is_cls)
    looks = _looks(run, data.normalise(images[1])) if is_cls else ()
    read = pd.DataFrame([*pd.DataFrame(digit).to_dict("records"), ink])
    read.index = [*range(len(read) - 1), INK]
    n_fit, n_tried = map(len, labels)
    facts = {"n_patches": side * side, "n_fit": n_fit, "n_tried": n_tried, "note": note}
    facts["chance"] = float(np.bincount(labels[1]).max() / n_tried)
    return read, looks, facts


def _pictures(experiment: Experiment) -> tuple[ImageData, str]:
    """Return the run's pictures, or the digits of the app if the full MNIST is missing."""
    from tfm_core.data.image_data import EMBEDDED, ImageData, is_here, load_images

    task = experiment.task_as(ImageTaskConfig)
    if task.name == "mnist" and not is_here(task.name):
        note = Paragraph("attention/own-digits")
        return load_images(ImageTaskConfig(name=EMBEDDED), seed=experiment.seed), note
    data = data_of(experiment)
    assert isinstance(data, ImageData)
    return data, ""


def _vectors(run: Run, images: Tensor) -> list[Floats]:
    """Return the vectors of all tokens, (N, T, d_model), before the first layer and after each."""
    import torch

    from tfm_core.probe.capture import capture

    model, _step = model_of(run)
    n_layers = len(modules_by_kind(run.experiment)["patches"])
    names = ["encoder.input", *(f"encoder.layers.{i}.residual" for i in range(n_layers))]
    parts = []
    for part in torch.split(images, at_once(run.experiment, len(images))):
        with capture(model, only={"input", "residual"}) as cache:
            model(part)
        parts.append([cache[name].numpy() for name in names])
    return [np.concatenate(one) for one in zip(*parts, strict=True)]


def _looks(run: Run, images: Tensor) -> tuple[float, ...]:
    import torch

    from tfm_core.probe.capture import capture

    model, _step = model_of(run)
    last = modules_by_kind(run.experiment)["patches"][-1]
    own, others = [], []
    for part in torch.split(images, at_once(run.experiment, len(images))):
        with capture(model, only={"weights"}, modules={last}) as cache:
            model(part)
        weights = cache[f"{last}.weights"].numpy()
        own.append(weights[:, :, 0, 0])
        others.append(weights[:, :, 1:, 0])
    return float(np.concatenate(own).mean()), float(np.concatenate(others).mean())


def _inks(images: Tensor, side: int) -> Floats:
    """Return the mean brightness (N, P) of each patch, row by row."""
    size = images.size(-1) // side
    cut = images.float().mean(1).unfold(1, size, size).unfold(2, size, size)
    found: Floats = cut.mean((3, 4)).flatten(1).numpy()
    return found


def _ink(
    fit: Floats, test: Floats, inks: Floats, true: Floats, *, is_cls: bool
) -> dict[str, float]:
    """Return the share of each patch's ink variance that is read, the mean over patches."""
    first = int(is_cls)
    varied = np.flatnonzero((inks.std(0) > 0) & (true.std(0) > 0)).tolist()
    spread = ((true - true.mean(0)) ** 2).mean(0)

    def read(before: Floats, after: Floats, at: int) -> float:
        predicted = _probe(before, inks[:, [at]], after)[:, 0]
        return 1 - float(((predicted - true[:, at]) ** 2).mean() / spread[at])

    found = {
        MEAN: [read(fit[:, first:].mean(1), test[:, first:].mean(1), at) for at in varied],
        PATCH: [read(fit[:, first + at], test[:, first + at], at) for at in varied],
    }
    if is_cls:
        found[CLS] = [read(fit[:, 0], test[:, 0], at) for at in varied]
    return {name: float(np.mean(values)) for name, values in found.items()}


def _probe(fit: Floats, targets: Floats, test: Floats) -> Floats:
    """Fit targets (N, C) to vectors (N, d) by ridge regression; return predictions (M, C)."""
    mean, std = fit.mean(0), fit.std(0) + 1e-6
    x, z = (fit - mean) / std, (test - mean) / std
    middle = targets.mean(0)
    square = x.T @ x + RIDGE * len(x) * np.eye(x.shape[1])
    predicted: Floats = z @ np.linalg.solve(square, x.T @ (targets - middle)) + middle
    return predicted
