"""Where the full picture sets lie, how they get there, and how damaged files are noticed.

The layout, the addresses and the checksums are torchvision's, so a set that torchvision has
downloaded is used as it is, even from a folder that cannot be written to.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfm_core.config.image_tasks import ImageTaskFacts
from tfm_core.data.download import DataUnavailable, Progress, fetch, matches, unpack_gzip
from tfm_core.data.idx import check_idx

__all__ = ["DataUnavailable", "Progress", "data_dir", "read_images"]

Part = tuple[Tensor, Tensor]  # images uint8 (N, C, H, W), labels int64 (N,)


@dataclass(frozen=True, slots=True)
class DownloadSource:
    """The torchvision dataset of a task, and mirrors to try after its own."""

    dataset: str
    mirrors: tuple[str, ...] = ()


SOURCES = {
    "mnist": DownloadSource("MNIST", ("https://storage.googleapis.com/cvdf-datasets/mnist/",)),
    "fashion-mnist": DownloadSource(
        "FashionMNIST",
        ("https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",),
    ),
    "cifar-10": DownloadSource("CIFAR10"),
}


def data_dir() -> Path:
    """Return the folder of the full sets: TFM_DATA_DIR, or ``data`` in the working directory."""
    return Path(os.environ.get("TFM_DATA_DIR") or "data")


def read_images(name: str, facts: ImageTaskFacts, progress: Progress) -> tuple[Part, Part]:
    """Return training and test pictures of a full set, downloading what is missing.

    Raises DataUnavailable, in a sentence: offline, a folder that cannot be written to, a damaged
    file.
    """
    from tfm_core.data.torchvision_import import torchvision

    source = SOURCES[name]
    dataset = getattr(torchvision.datasets, source.dataset)
    ready: Callable[..., None] = _ready_cifar if name == "cifar-10" else _ready_idx
    ready(dataset, facts, source, data_dir(), progress)
    train, test = (_tensors(dataset(str(data_dir()), train=train)) for train in (True, False))
    for (images, labels), n in ((train, facts.n_train), (test, facts.n_test)):
        expected = (n, facts.channels, facts.image_size, facts.image_size)
        if images.shape != expected or int(labels.max()) >= facts.n_classes:
            raise DataUnavailable(
                "{label} in {data_dir} has pictures {shape} and labels up to {highest}, but "
                "{expected} and {last} would be right; delete its files, and they are "
                "downloaded again.",
                label=facts.label,
                data_dir=data_dir(),
                shape=tuple(images.shape),
                highest=int(labels.max()),
                expected=expected,
                last=facts.n_classes - 1,
            )
    return train, test


def _tensors(dataset: Any) -> Part:
    labels = torch.as_tensor(dataset.targets, dtype=torch.int64)
    images = torch.as_tensor(dataset.data)
    if images.ndim == 3:
        return images[:, None], labels  # (N, H, W) to (N, 1, H, W)
    return images.permute(0, 3, 1, 2).contiguous(), labels  # torchvision holds (N, H, W, C)


def _ready_idx(
    dataset: Any, facts: ImageTaskFacts, source: DownloadSource, root: Path, progress: Progress
) -> None:
    """See that the four IDX files of an MNIST-like set lie there and are whole."""
    folder = root / source.dataset / "raw"
    for archive, md5 in dataset.resources:
        path = folder / archive.removesuffix(".gz")
        if not path.is_file():
            packed = folder / archive
            if not matches(packed, md5):
                addresses = [f"{mirror}{archive}" for mirror in (*dataset.mirrors, *source.mirrors)]
                fetch(addresses, packed, md5=md5, label=facts.label, progress=progress)
            unpack_gzip(packed, path)
        n = facts.n_train if archive.startswith("train") else facts.n_test
        side = facts.image_size
        check_idx(path, (n, side, side) if "images" in archive else (n,))


def _ready_cifar(
    dataset: Any, facts: ImageTaskFacts, source: DownloadSource, root: Path, progress: Progress
) -> None:
    """See that the batches of CIFAR lie there and are whole: they are pickles, so by checksum."""
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
                "{path} is damaged: its checksum is not {md5}; delete it, and it is "
                "downloaded again.",
                path=folder / file,
                md5=md5,
            )
