"""The pictures that come with the app: 5,000 MNIST digits, 500 of each, and four photographs.

NOTICE, here and among the photographs, names sources and licences.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

FILE = Path(__file__).with_name("mnist_5000.npz")
PHOTOGRAPHS = ("cat", "coffee", "rocket", "astronaut")


def read_embedded() -> tuple[Tensor, Tensor]:
    """Return images uint8 (5000, 1, 28, 28), ordered by class, and labels int64 (5000,)."""
    with np.load(FILE, allow_pickle=False) as file:
        images, labels = file["images"], file["labels"]
    return torch.from_numpy(images)[:, None], torch.from_numpy(labels.astype(np.int64))
