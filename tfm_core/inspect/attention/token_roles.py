"""What the tokens of a Vision Transformer know: the CLS token, the mean of patches, one patch.

A linear probe (Alain & Bengio 2016) reads the digit, and the ink under each patch, from each
layer's vectors: fitted to training pictures, tested on validation pictures. What it can't read may
be there in another form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tfm_core.choices.config import Experiment, ImageTaskConfig
from tfm_core.inspect.attention.trained import (
    at_once,
    cached_by_weights,
    data_of,
    in_all,
    model_of,
)
from tfm_core.inspect.compare.conclusions import tells_apart
from tfm_core.probe.labels import modules_by_kind, patches_per_side
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError, joined

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from tfm_core.data.image_data import ImageData

N_FIT, N_TRIED = 1000, 400
N_MIN = 40  # where maps are so large that all would take minutes
RIDGE = 1e-2
CLS, MEAN, PATCH, INK = "cls", "mean", "patch", "ink"


def conclusion(read: pd.DataFrame, n_tried: int) -> Sentence:
    """Return what the tokens know, in sentences. read: of ``token_roles``."""
    whole = CLS if CLS in read else MEAN
    *_layers, digit, ink = read.to_dict("records")
    gathers, alone = digit[whole], digit[PATCH]
    sentences: list[Sentence] = [Paragraph(f"attention/digit-{whole}", whole=gathers, alone=alone)]
    if tells_apart(alone, gathers, n_tried):
        sentences.append(N_("A single patch knows more of the digit."))
    elif not tells_apart(gathers, alone, n_tried):
        sentences.append(N_("{n} pictures can't tell these apart.", n=n_tried))
    own, others = max(0.0, ink[PATCH]), max(0.0, ink[whole])
    sentences.append(Paragraph(f"attention/ink-{whole}", own=own, others=others))
    if ink[PATCH] > ink[whole]:
        sentences.append(N_("A patch knows its own place best."))
    else:
        sentences.append(N_("A patch does not know its own place best."))
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
    CLS; and n_patches, n_fit and n_tried, with a note on pictures outside the run's splits. Raises
    StudentError for other runs.
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
