"""A batch of digits: one ``index_select`` on the device against a DataLoader with ToTensor.

The DataLoader turns every picture into a PIL image and that into a tensor, as torchvision's MNIST
does; ours takes 128 rows out of one uint8 tensor. Both orders, and all pixels, are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Table
from benchmarks.timing import TimeRange, measure, ratio
from tfm_core.config import ImageTaskConfig
from tfm_core.data.augment import augment
from tfm_core.data.image_data import ImageData, ImageSplit, load_images
from tfm_core.inspect.speed.loading import PictureDataset

BATCH = 128
GOAL = "batch from a DataLoader"


def loader(split: ImageSplit, order: Tensor) -> DataLoader[tuple[Tensor, int]]:
    """Return a DataLoader in this process that gives pictures in an order."""
    return DataLoader(PictureDataset(split), batch_size=BATCH, sampler=order.tolist())


def taken(split: ImageSplit, order: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of uint8 pictures and labels, indexed from one tensor."""
    for rows in order.split(BATCH):
        yield split.images.index_select(0, rows), split.labels.index_select(0, rows)


def as_floats(images: Tensor) -> Tensor:
    """Return uint8 pixels as ToTensor does: float32 from 0 to 1."""
    return images.to(torch.float32).div_(255)


def tables(*, quick: bool) -> Iterator[Table]:
    """Check that pixels are the same, then time passes in turn."""
    data = load_images(ImageTaskConfig(), seed=0)
    n_batches = 4 if quick else 8
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(data.train), generator=generator)[: n_batches * BATCH]
    _check(data.train, order)
    passes = _passes(data, order)
    many = {name: 1 if name == "loader" else 20 for name in passes}
    seconds = measure(passes, rounds=3 if quick else 20, repeats=many)
    words = {
        "loader": "DataLoader, ToTensor a picture, floats from 0 to 1",
        "floats": "ours, the same floats",
        "bytes": "ours, uint8 as it lies on the device",
        "normalised": "ours, normalised",
        "shifted": "ours, normalised and shifted by up to a pixel",
    }
    rows = []
    for name, values in seconds.items():
        micro = TimeRange.of([1e6 * value / n_batches for value in values])
        gain = ratio(seconds["loader"], values)
        target = goal_cell(GOAL, gain.median) if name == "floats" else ""
        faster = "" if name == "loader" else f"{gain.show('x', 0)} faster"
        rows.append([words[name], micro.show(digits=0), faster, target])
    notes = ["The same pictures in the same order; without augmentation, except in the last row."]
    gain = ratio(seconds["loader"], seconds["floats"])
    columns = ["", "CPU-microseconds a batch", "ratio", "target"]
    yield Table("A batch of 128 digits", columns, rows, notes, {GOAL: Figure(gain.median)})


def _check(split: ImageSplit, order: Tensor) -> None:
    for (images, labels), (bytes_, ours) in zip(
        loader(split, order), taken(split, order), strict=True
    ):
        assert torch.equal(images, as_floats(bytes_))
        assert torch.equal(labels, ours)


def _passes(data: ImageData, order: Tensor) -> dict[str, Callable[[], None]]:
    generator = torch.Generator().manual_seed(0)
    batches = loader(data.train, order)

    def from_loader() -> None:
        for _ in batches:
            pass

    def ours(change: Callable[[Tensor], object]) -> Callable[[], None]:
        def once() -> None:
            for images, _ in taken(data.train, order):
                change(images)

        return once

    def shifted(images: Tensor) -> Tensor:
        pictures = data.normalise(images)
        return augment(pictures, shift=1, rotation=0, scale=0, generator=generator)

    return {
        "loader": from_loader,
        "floats": ours(as_floats),
        "bytes": ours(lambda images: images),
        "normalised": ours(data.normalise),
        "shifted": ours(shifted),
    }
