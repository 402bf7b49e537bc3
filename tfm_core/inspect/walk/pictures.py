"""A few pictures for a walk, those of a run's probe or of the app, through their model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tfm_core.anatomy import anatomy
from tfm_core.config import (
    Experiment,
    ImageTaskConfig,
    ModelConfig,
    OwnPicturesTaskConfig,
    PretrainedPicturesConfig,
)
from tfm_core.config.shape import patches_per_side
from tfm_core.data.embedded import read_embedded
from tfm_core.data.image_data import EMBEDDED, load_images, pixel_statistics
from tfm_core.data.own.pictures_task import load_own_pictures
from tfm_core.data.shape import data_shape
from tfm_core.inspect.attention.trained import at_once, pixels_of_data
from tfm_core.inspect.walk.forward import Item, Subject, on_device, recorded
from tfm_core.models.build import ImageShape, Model
from tfm_core.pretrained.pictures import photographs
from tfm_core.sentences import N_, joined

N_PICTURES = 10


def of_pictures(
    experiment: Experiment,
    model: Model,
    items: Sequence[Item],
    images: npt.NDArray[np.uint8] | None,
) -> Subject:
    """Run a model on pictures. items, images: as a probe holds them; None takes some of the app.

    Images without items are somebody's own; they are normalised as the training set was. Raises
    ValueError, in a sentence, without that set.
    """
    config = experiment.task_as(ImageTaskConfig)
    shape = data_shape(experiment)
    assert isinstance(shape, ImageShape)
    labels = [item["label"] for item in items if item.get("label") is not None]
    is_own = images is not None and not items
    notes: list[str] = []
    if images is None:
        images, labels, note = _some_pictures(config, experiment.seed)
        notes += [note] if note else []
    n = at_once(experiment, len(images))
    images, labels = images[:n], labels[:n]
    pixels = torch.from_numpy(np.array(images))
    mean, std, has_own = _statistics(config, experiment.seed, pixels)
    if is_own or config.is_opened:  # its own mean would make another picture of it
        (mean, std), has_own = pixels_of_data(experiment), False
    scaled = pixels.float().div(255).sub(mean[:, None, None]).div(std[:, None, None])
    inputs = on_device(model, scaled)
    names = config.facts.class_names
    return Subject(
        experiment.model, model, shape, inputs, recorded(model, inputs),
        {**_places(experiment.model, shape), "classes": [list(names)]},
        truth=[[names[label]] for label in labels], pictures=images,
        statistics=(mean, std), has_own_statistics=has_own, note=joined(*notes),
    )  # fmt: skip


def of_digits(config: ModelConfig, shape: ImageShape, model: Model, batch: int) -> Subject:
    """Run a model of 28 x 28 grey pictures on a batch of the digits that come with the app."""
    images, labels = read_embedded()
    rows = torch.arange(batch) * len(images) // batch  # they are ordered by class
    pixels, names = images[rows], [str(label) for label in labels[rows].tolist()]
    mean, std = pixel_statistics(pixels)
    scaled = pixels.float().div(255).sub(mean[:, None, None]).div(std[:, None, None])
    inputs = on_device(model, scaled)
    return Subject(
        config, model, shape, inputs, recorded(model, inputs),
        {**_places(config, shape), "classes": [[str(digit) for digit in range(shape.n_classes)]]},
        truth=[[name] for name in names], pictures=pixels.numpy(),
        statistics=(mean, std), has_own_statistics=True,
    )  # fmt: skip


def _places(config: ModelConfig, shape: ImageShape) -> dict[str, Sequence[Sequence[str]]]:
    """Return the names of the patches, and of all tokens."""
    sizes = anatomy(config, shape).sizes
    side = patches_per_side(sizes["side"], sizes["patch_size"])
    patches = [f"{row},{column}" for row in range(1, side + 1) for column in range(1, side + 1)]
    return {"tokens": [["CLS"] * sizes["has_cls"] + patches], "patches": [patches]}


def _some_pictures(
    config: ImageTaskConfig, seed: int
) -> tuple[npt.NDArray[np.uint8], list[int], str]:
    """Return a picture of each class from the set that comes with the app, or noise of its size."""
    if isinstance(config, PretrainedPicturesConfig):
        return photographs(config.facts), [], ""
    if isinstance(config, OwnPicturesTaskConfig):
        return _own_pictures(config, seed)
    if config.facts.channels == 1 and config.facts.image_size == 28:
        small = ImageTaskConfig(name=EMBEDDED)
        split = load_images(small, seed=seed).validation
        labels = split.labels.tolist()
        chosen = [labels.index(label) for label in range(N_PICTURES)]
        note = "" if config.name == EMBEDDED else N_("The pictures are the app's digits.")
        if "fashion" in config.name:
            return split.images[chosen].numpy(), [], note
        return split.images[chosen].numpy(), list(range(N_PICTURES)), note
    words = N_("This task has no pictures before training; these are noise.")
    return *_noise(config, seed), words


def _own_pictures(
    config: OwnPicturesTaskConfig, seed: int
) -> tuple[npt.NDArray[np.uint8], list[int], str]:
    """Return pictures of the set, of different classes where it has as many; else noise."""
    try:
        split = load_own_pictures(config, seed=seed).validation
    except ValueError as error:
        return *_noise(config, seed), str(error)
    chosen = split.labels.argsort(stable=True)
    chosen = chosen[:: max(1, len(chosen) // N_PICTURES)][:N_PICTURES]
    return split.images[chosen].numpy(), split.labels[chosen].tolist(), ""


def _noise(config: ImageTaskConfig, seed: int) -> tuple[npt.NDArray[np.uint8], list[int]]:
    facts = config.facts
    size = (N_PICTURES, facts.channels, facts.image_size, facts.image_size)
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8), []


def _statistics(config: ImageTaskConfig, seed: int, pixels: Tensor) -> tuple[Tensor, Tensor, bool]:
    """Return mean and deviation (C,) of the training set, or of these pictures, and which it is."""
    if config.name == EMBEDDED:
        data = load_images(config, seed=seed)
        return data.mean, data.std, False
    if isinstance(config, OwnPicturesTaskConfig):
        with suppress(ValueError):  # the set is gone
            data = load_own_pictures(config, seed=seed)
            return data.mean, data.std, False
    return *pixel_statistics(pixels), True
