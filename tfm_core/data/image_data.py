"""Pictures as tensors: three splits on one device, as uint8, normalised a batch at a time."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tfm_core.choices.config.image_tasks import ImageTaskConfig, ImageTaskFacts
from tfm_core.data.image_files import DataUnavailable, Progress, data_dir, read_images
from tfm_core.data.moving import Data, Examples, normalised
from tfm_core.sentences import N_, Paragraph, StudentError

__all__ = ["DataUnavailable", "ImageData", "ImageSplit", "data_dir", "load_images"]

EMBEDDED = "mnist-5000"
TEST_SEED = 0


@dataclass(frozen=True)
class ImageSplit(Examples):
    """images: uint8 (N, C, H, W); labels: int64 (N,)."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.labels)

    def pictures(self, rows: Tensor | slice) -> Tensor:
        """See Examples."""
        return self.images[rows]


@dataclass(frozen=True)
class ImageData(Data):
    """An image task: its facts, three splits, mean and deviation of the training pixels.

    mean and std: float32 (C,), of pixels from 0 to 1 in the training split.
    """

    large = ("train",)
    facts: ImageTaskFacts
    train: ImageSplit
    validation: ImageSplit
    test: ImageSplit
    mean: Tensor
    std: Tensor
    remark: str | None = None

    def normalise(self, images: Tensor) -> Tensor:
        """Return uint8 pictures (..., C, H, W) as float32 of mean 0 and deviation 1."""
        return normalised(images, self.mean, self.std)

    @property
    def names(self) -> tuple[str, ...]:
        """See Data."""
        return self.facts.class_names

    @property
    def learned(self) -> Tensor:
        """See Data."""
        return self.train.labels

    @property
    def n_answers(self) -> int:
        """See Data."""
        return 1

    def truth(self, rows: slice, length: int) -> tuple[Tensor, Tensor]:
        """See Data."""
        labels = self.validation.labels[rows, None]
        return labels, torch.ones_like(labels, dtype=torch.bool)

    def shown(self, indices: Tensor) -> tuple[list[str], list[str]]:
        """See Data."""
        labels = self.train.labels[indices].tolist()
        return numbered(indices), [self.names[label] for label in labels]


def numbered(indices: Tensor) -> list[str]:
    """Return what pictures are called in a list."""
    return [N_("picture {n:,}", n=n) for n in indices.tolist()]


def load_images(
    config: ImageTaskConfig, *, seed: int, progress: Progress | None = None
) -> ImageData:
    """Return the pictures of a task on the CPU; the same seed makes the same splits.

    The seed shares out training and validation, and chooses the training labels that are wrong,
    where the task wants some. The test pictures are the same for every seed: of
    ``mnist-5000``, which comes with the app, 50 of each class that were drawn once; the others keep
    their official test set and are read from ``data_dir()``, or downloaded into it once
    (``progress(done bytes, total bytes, words)`` is called). Raises DataUnavailable.
    """
    facts = config.facts
    if config.name == EMBEDDED:
        from tfm_core.data.embedded import read_embedded

        generator = torch.Generator().manual_seed(TEST_SEED)
        test, rest = split_off(ImageSplit(*read_embedded()), facts.n_test, generator)
        if seed != TEST_SEED:  # its own splits go on where the draw of the test ends
            generator.manual_seed(seed)
        return divided(config, rest, test, seed=seed, generator=generator)
    train, official, remark = read_images(
        config.name, facts, progress or (lambda done, total, words: None)
    )
    data = divided(config, ImageSplit(*train), ImageSplit(*official), seed=seed)
    return replace(data, remark=remark)


def divided(
    config: ImageTaskConfig,
    rest: ImageSplit,
    test: ImageSplit,
    *,
    seed: int,
    validation: ImageSplit | None = None,
    generator: torch.Generator | None = None,
) -> ImageData:
    """Return the data of a test and the rest, of which the validation is drawn if there is none.

    generator: what draws it, one of the seed if not given.
    """
    train, label = rest, config.facts.label
    if validation is None:
        if config.n_validation >= len(rest):
            n_rest, n_validation = len(rest), config.n_validation
            raise StudentError(
                Paragraph(
                    "data/n-validation", n_validation=n_validation, label=label, n_rest=n_rest
                )
            )
        generator = generator or torch.Generator().manual_seed(seed)
        validation, train = split_off(rest, config.n_validation, generator)
        if len(train) > 1 and (train.images == train.images[:1]).all():
            raise StudentError(
                Paragraph("data/all-alike", n=len(train), label=label, path=data_dir())
            )
    statistics = pixel_statistics(train.images)
    if config.label_noise:
        train = mislabelled(train, config.label_noise, config.facts.n_classes, seed)
    return ImageData(config.facts, train, validation, test, *statistics)


def mislabelled(split: ImageSplit, share: float, n_classes: int, seed: int) -> ImageSplit:
    """Return a split of which a share, rounded to whole pictures, has another label at random.

    Each of the other classes is as likely. The seed chooses the pictures and their labels.
    """
    generator = torch.Generator().manual_seed(zlib.crc32(f"label noise {seed}".encode()))
    chosen = torch.randperm(len(split), generator=generator)[: round(share * len(split))]
    labels = split.labels.clone()
    offsets = torch.randint(1, n_classes, (len(chosen),), generator=generator)
    labels[chosen] = (labels[chosen] + offsets) % n_classes
    return ImageSplit(split.images, labels)


def split_off(
    split: ImageSplit, n: int, generator: torch.Generator
) -> tuple[ImageSplit, ImageSplit]:
    """Return ``n`` random pictures with the classes as in the whole, and the rest, both mixed."""
    order = torch.randperm(len(split), generator=generator)
    labels = split.labels[order]
    # Each picture's place in its class, as a share: the n smallest shares take evenly from all.
    share = torch.empty(len(split), dtype=torch.float64)
    for label in range(int(labels.max()) + 1):
        members = (labels == label).nonzero().flatten()
        share[members] = (torch.arange(len(members), dtype=torch.float64) + 0.5) / len(members)
    chosen = torch.zeros(len(split), dtype=torch.bool)
    chosen[share.argsort(stable=True)[:n]] = True
    return _mixed(split, order[chosen], generator), _mixed(split, order[~chosen], generator)


def _mixed(split: ImageSplit, indices: Tensor, generator: torch.Generator) -> ImageSplit:
    indices = indices[torch.randperm(len(indices), generator=generator)]
    return ImageSplit(split.images[indices], split.labels[indices])


def pixel_statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and deviation (C,) of uint8 pictures (N, C, H, W), as pixels from 0 to 1.

    Counted exactly through the 256 values a pixel can have, without a float copy of the pictures.
    """
    values = torch.arange(256, dtype=torch.float64) / 255
    means, deviations = [], []
    for channel in images.unbind(1):
        counts = torch.bincount(channel.flatten(), minlength=256).double()
        mean = (counts @ values) / counts.sum()
        means.append(mean)
        deviations.append(((counts @ (values - mean).square()) / counts.sum()).sqrt())
    return torch.stack(means).float(), torch.stack(deviations).float()
