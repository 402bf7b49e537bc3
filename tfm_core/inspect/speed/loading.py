"""Batches from one tensor on the device, against a DataLoader that makes each example.

A DataLoader transforms and stacks examples one by one: right for data that does not fit into
memory, slow for data that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from tfm_core.config import facts_of
from tfm_core.data.image_data import ImageData, ImageSplit
from tfm_core.data.text_data import TextData
from tfm_core.data.vocabulary import BOS, EOS, PAD
from tfm_core.inspect.speed.bench import Bench, compare
from tfm_core.inspect.speed.report import BenchmarkCase
from tfm_core.sentences import N_

BATCHES = 4
"""Batches in one pass over the data."""

Batch = tuple[Tensor, Tensor]


class PictureDataset(Dataset[tuple[Tensor, int]]):
    """Pictures one by one, through PIL and ToTensor, as torchvision's data sets give them."""

    def __init__(self, split: ImageSplit) -> None:
        """Keep the pixels of a split, uint8 (N, C, H, W)."""
        from tfm_core.data.torchvision_import import torchvision  # noqa: F401  mended first

        from torchvision.transforms import ToTensor  # isort: skip

        self.pixels, self.labels = split.images.cpu(), split.labels.tolist()
        self.transform = ToTensor()

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """Return a picture (C, H, W), float from 0 to 1, and its label."""
        from PIL import Image

        pixels = self.pixels[index].permute(1, 2, 0).numpy()
        picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
        return self.transform(picture), self.labels[index]


class PairDataset(Dataset[Batch]):
    """Pairs of sentences one by one, looked up word by word."""

    def __init__(self, data: TextData) -> None:
        """Keep the words."""
        self.task, self.pairs = data.task, data.train.pairs
        self.end = [EOS] if facts_of(data.task.name).answer == "sequence" else []

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.pairs)

    def __getitem__(self, index: int) -> Batch:
        """Return source and target ids, not padded."""
        pair = self.pairs[index]
        src = self.task.src_vocabulary.encode(pair.src)
        tgt = [BOS, *self.task.tgt_vocabulary.encode(pair.tgt), *self.end]
        return torch.tensor(src), torch.tensor(tgt)


def pad_together(pairs: list[Batch]) -> Batch:
    """Pad the pairs of a batch to its longest."""
    src, tgt = zip(*pairs, strict=True)
    return (
        pad_sequence(list(src), batch_first=True, padding_value=PAD),
        pad_sequence(list(tgt), batch_first=True, padding_value=PAD),
    )


def through_loader(loader: DataLoader[Any], device: torch.device) -> list[Batch]:
    """Have every example made, stacked and moved."""
    return [(one.to(device), other.to(device)) for one, other in loader]


def pictures_taken(data: ImageData, order: Tensor, size: int) -> list[Batch]:
    """Take rows of one uint8 tensor on the device, and convert them to floats there."""
    train = data.train
    return [
        (train.images.index_select(0, indices).to(torch.float32).div_(255), train.labels[indices])
        for indices in torch.split(order.to(train.labels.device), size)
    ]


def pairs_taken(
    data: TextData, order: Tensor, lengths: tuple[Tensor, Tensor], size: int
) -> list[Batch]:
    """Take rows out of two tensors of ids that lie on the device, cut to the longest of a batch."""
    train, batches = data.train, []
    for indices in torch.split(order, size):
        there = indices.to(train.src.device)
        src_len, tgt_len = (int(all_[indices].max()) for all_ in lengths)
        batches.append((train.src[there, :src_len], train.tgt[there, :tgt_len]))
    return batches


def cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare a few batches of the training set."""
    data, size = bench.trainer.data, bench.trainer.batch_size
    order = torch.arange(min(BATCHES * size, bench.trainer.objective.n_train))
    ours: Callable[[], list[Batch]]
    if isinstance(data, ImageData):
        pictures = data
        loader: DataLoader[Any] = DataLoader(
            PictureDataset(data.train), batch_size=size, sampler=order.tolist()
        )
        ours = lambda: pictures_taken(pictures, order, size)  # noqa: E731
    else:
        assert isinstance(data, TextData)
        pairs = data
        lengths = ((data.train.src != PAD).sum(1).cpu(), (data.train.tgt != PAD).sum(1).cpu())
        loader = DataLoader(
            PairDataset(data), batch_size=size, sampler=order.tolist(), collate_fn=pad_together
        )
        ours = lambda: pairs_taken(pairs, order, lengths, size)  # noqa: E731
    theirs = through_loader(loader, bench.device)
    equal = [
        one
        for number, (left, right) in enumerate(zip(theirs, ours(), strict=True))
        for one in compare(
            {"inputs": left[0], "targets": left[1]},
            {"inputs": right[0], "targets": right[1]},
            "one tensor",
            relative=0.0,
            part=f"batch {number + 1}, ",
        )
    ]
    yield BenchmarkCase(
        N_("{n_theirs} batches of {size}", n_theirs=len(theirs), size=size),
        {"loader": lambda: through_loader(loader, bench.device), "one tensor": ours},
        tuple(equal),
    )
