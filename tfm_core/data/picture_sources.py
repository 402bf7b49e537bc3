"""Where the full picture sets come from, and the checksums of their official files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DownloadSource:
    """The torchvision dataset of a task, and mirrors to try after its own.

    unpacked: MD5 of the official files once they are unpacked, where known.
    """

    dataset: str
    mirrors: tuple[str, ...] = ()
    unpacked: Mapping[str, str] = field(default_factory=dict)


SOURCES = {
    "mnist": DownloadSource(
        "MNIST",
        ("https://storage.googleapis.com/cvdf-datasets/mnist/",),
        {
            "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
            "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
            "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
            "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
        },
    ),
    "fashion-mnist": DownloadSource(
        "FashionMNIST",
        ("https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",),
    ),
    "cifar-10": DownloadSource("CIFAR10"),
}
