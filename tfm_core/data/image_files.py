"""The full picture sets on disk: downloaded, checked and read.

The layout, the addresses and the checksums are torchvision's, so a set that torchvision has
downloaded is used as it is, even from a folder that cannot be written to.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfm_core.choices.config.image_tasks import ImageTaskFacts
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
from tfm_core.sentences import Paragraph

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
