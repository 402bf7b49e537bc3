"""Pictures as tensors: three splits on one device, as uint8, normalised a batch at a time.

The full sets are downloaded, checked and read. Layout, addresses and checksums are torchvision's:
a set that torchvision has downloaded is used as it is, even from a folder that is read-only.
Augmentation moves, turns and grows each training picture a little, anew in every batch; what comes
into view at an edge repeats the edge's pixels.
"""

from __future__ import annotations

import math
import os
import tarfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.choices.config.image_tasks import ImageTaskConfig, ImageTaskFacts
from tfm_core.data.download import (
    SOURCES,
    DataUnavailable,
    DownloadSource,
    Progress,
    fetch,
    idx_count,
    matches,
    unpack_gzip,
)
from tfm_core.data.moving import Data, Examples, normalised
from tfm_core.sentences import N_, Paragraph, StudentError

EMBEDDED = "mnist-5000"
_EMBEDDED = Path(__file__).with_name("embedded")
EMBEDDED_FILE = _EMBEDDED / "mnist_5000.npz"
"""5,000 MNIST digits that come with the app, 500 of each."""
PHOTOGRAPHS = tuple(
    _EMBEDDED / "photographs" / f"{name}.jpg" for name in ("cat", "coffee", "rocket", "astronaut")
)
"""Photographs that come with the app; NOTICE, here and beside the digits, names all sources."""
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


def read_embedded() -> tuple[Tensor, Tensor]:
    """Return images uint8 (5000, 1, 28, 28), ordered by class, and labels int64 (5000,)."""
    with np.load(EMBEDDED_FILE, allow_pickle=False) as file:
        images, labels = file["images"], file["labels"]
    return torch.from_numpy(images)[:, None], torch.from_numpy(labels.astype(np.int64))


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


__all__ = ["DataUnavailable", "Progress", "data_dir", "read_images"]

Part = tuple[Tensor, Tensor]  # images uint8 (N, C, H, W), labels int64 (N,)


def data_dir() -> Path:
    """Return the folder of the full sets: TFM_DATA_DIR, or ``data`` in the working directory."""
    return Path(os.environ.get("TFM_DATA_DIR") or "data")


def is_here(name: str) -> bool:
    """Return whether the pictures of an MNIST-like set are in the folder, so none is downloaded."""
    folder = data_dir() / SOURCES[name].dataset / "raw"
    return all((folder / file).is_file() for file in SOURCES[name].unpacked)


def read_images(
    name: str, facts: ImageTaskFacts, progress: Progress
) -> tuple[Part, Part, str | None]:
    """Return training and test pictures of a full set, and a remark; what is missing is downloaded.

    Files in the form of the set are used whatever they hold, of as many pictures as there are; the
    remark says where they are not the official ones. Raises DataUnavailable:
    offline, a folder that cannot be written to, a damaged file.
    """
    from tfm_core.data.torchvision_import import torchvision

    source = SOURCES[name]
    dataset = getattr(torchvision.datasets, source.dataset)
    ready: Callable[..., str | None] = _ready_cifar if name == "cifar-10" else _ready_idx
    remark = ready(dataset, facts, source, data_dir(), progress)
    train, test = (_tensors(dataset(str(data_dir()), train=train)) for train in (True, False))
    for images, labels in (train, test):
        expected = (len(labels), facts.channels, facts.image_size, facts.image_size)
        if images.shape != expected or int(labels.max()) >= facts.n_classes:
            raise DataUnavailable(
                Paragraph(
                    "data/custom-pictures",
                    label=facts.label,
                    data_dir=data_dir(),
                    shape=tuple(images.shape),
                    highest=int(labels.max()),
                    expected=expected,
                    last=facts.n_classes - 1,
                )
            )
    return train, test, remark


def _tensors(dataset: Any) -> Part:
    labels = torch.as_tensor(dataset.targets, dtype=torch.int64)
    images = torch.as_tensor(dataset.data)
    if images.ndim == 3:
        return images[:, None], labels  # (N, H, W) to (N, 1, H, W)
    return images.permute(0, 3, 1, 2).contiguous(), labels  # torchvision holds (N, H, W, C)


def _ready_idx(
    dataset: Any, facts: ImageTaskFacts, source: DownloadSource, root: Path, progress: Progress
) -> str | None:
    """Make sure that the four IDX files of an MNIST-like set are there and complete."""
    folder, side = root / source.dataset / "raw", facts.image_size
    counts: dict[str, int] = {}
    others = []
    for archive, md5 in dataset.resources:
        packed, path = folder / archive, folder / archive.removesuffix(".gz")
        if not path.is_file() and packed.is_file():
            # put there by hand; half a download is fetched again
            with suppress(DataUnavailable):
                unpack_gzip(packed, path)
        if not path.is_file():
            if not matches(packed, md5):
                addresses = [f"{mirror}{archive}" for mirror in (*dataset.mirrors, *source.mirrors)]
                fetch(addresses, packed, md5=md5, label=facts.label, progress=progress)
            unpack_gzip(packed, path)
        counts[path.name] = idx_count(path, (side, side) if "images" in archive else ())
        official = source.unpacked.get(path.name)
        if official is not None and not matches(path, official):
            others.append(path.name)
    for part, n in (("train", facts.n_train), ("t10k", facts.n_test)):
        n_pictures, n_labels = (
            counts[f"{part}-{what}"] for what in ("images-idx3-ubyte", "labels-idx1-ubyte")
        )
        if n_pictures != n_labels:
            raise DataUnavailable(
                Paragraph(
                    "data/labels-missing",
                    path=folder,
                    n_pictures=n_pictures,
                    n_labels=n_labels,
                    part=part,
                )
            )
        if n_pictures != n and f"{part}-images-idx3-ubyte" not in others:
            others.append(f"{part}-images-idx3-ubyte")
    if not others:
        return None
    return Paragraph(
        "data/not-official",
        label=facts.label,
        files=", ".join(others),
        path=folder,
        n_train=counts["train-images-idx3-ubyte"],
        n_test=counts["t10k-images-idx3-ubyte"],
    )


def _ready_cifar(
    dataset: Any, facts: ImageTaskFacts, source: DownloadSource, root: Path, progress: Progress
) -> str | None:
    """Make sure that the batches of CIFAR are there; they are pickles, so checked by checksum."""
    folder = root / dataset.base_folder
    meta = (dataset.meta["filename"], dataset.meta["md5"])
    files = [*dataset.train_list, *dataset.test_list, meta]
    if not all((folder / file).is_file() for file, _ in files):
        packed = root / dataset.filename
        if not matches(packed, dataset.tgz_md5):
            fetch([dataset.url], packed, md5=dataset.tgz_md5, label=facts.label, progress=progress)
        with tarfile.open(packed) as archive:
            archive.extractall(root, filter="data")
    for file, md5 in files:
        if not matches(folder / file, md5):
            raise DataUnavailable(
                "{path} is damaged: its checksum is not {md5}. Delete it to download it again.",
                path=folder / file,
                md5=md5,
            )
    return None


def draw_moves(
    n: int, *, shift: float, rotation: float, scale: float, generator: torch.Generator
) -> Tensor:
    """Return how each of ``n`` pictures is changed, for ``moved``; (0, n) where none is.

    shift: pixels, rotation: degrees, scale: share; each is drawn evenly from minus to plus that.
    Returns (2, n) int64, whole pixels down and right, where only a whole-numbered ``shift`` is
    given; else (4, n) from -1 to 1: shares of the most that each is moved down and right, turned
    and scaled, for which pixels are interpolated. ``generator`` may live on any device.
    """
    on = generator.device
    if shift == rotation == scale == 0:
        return torch.empty(0, n, device=on)
    if rotation == scale == 0 and float(shift).is_integer():
        limit = int(shift)
        return torch.randint(-limit, limit + 1, (2, n), generator=generator, device=on)
    return torch.rand(4, n, generator=generator, device=on) * 2 - 1


def moved(images: Tensor, moves: Tensor, *, shift: float, rotation: float, scale: float) -> Tensor:
    """Return pictures (B, C, H, W) changed by ``draw_moves``, whose moves lie on their device."""
    if not len(moves):
        return images
    if not moves.is_floating_point():
        down, right = moves
        return shifted(images, down, right)
    down, right, turn, grow = moves
    return transformed(
        images,
        down=down * shift,
        right=right * shift,
        angle=turn * rotation,
        zoom=1 + grow * scale,
    )


def shifted(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Return pictures (B, C, H, W) moved by whole pixels; down and right: int (B,)."""
    n, channels, height, width = images.shape
    rows = (torch.arange(height, device=images.device) - down[:, None]).clamp(0, height - 1)
    columns = (torch.arange(width, device=images.device) - right[:, None]).clamp(0, width - 1)
    indices = (rows[:, :, None] * width + columns[:, None, :]).view(n, 1, height * width)
    pixels = images.flatten(2).gather(2, indices.expand(-1, channels, -1))
    return pixels.view(n, channels, height, width)


def transformed(
    images: Tensor, *, down: Tensor, right: Tensor, angle: Tensor, zoom: Tensor
) -> Tensor:
    """Return square pictures (B, C, H, H) turned, scaled about the middle, then moved.

    down and right: pixels (B,); angle: degrees counter-clockwise (B,); zoom: factor (B,).
    """
    half = images.shape[-1] / 2
    radians = angle * (math.pi / 180)
    cos, sin = radians.cos() / zoom, radians.sin() / zoom
    x, y = right / half, down / half  # grid_sample counts from -1 to 1
    # Each pixel of the result looks up where it came from: the inverse of the change.
    inverse = torch.stack(
        [
            torch.stack([cos, -sin, sin * y - cos * x], -1),
            torch.stack([sin, cos, -sin * x - cos * y], -1),
        ],
        dim=1,
    ).to(images.dtype)  # (B, 2, 3)
    grid = F.affine_grid(inverse, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)
