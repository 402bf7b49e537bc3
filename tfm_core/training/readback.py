"""Numbers read back from the device that computes them.

A GPU works through what it was asked for while the program goes on asking; whoever reads a number
waits until all of it is done. So what is needed together is read together.
"""

from __future__ import annotations

import torch
from torch import Tensor


def read(*values: Tensor | float) -> list[float]:
    """Return scalars as plain numbers: one wait, however many there are.

    They are read as float32, which holds counts up to 2^24 exactly.
    """
    tensors = [value.detach().float() for value in values if isinstance(value, Tensor)]
    there = iter(torch.stack(tensors).tolist() if tensors else [])
    return [next(there) if isinstance(value, Tensor) else float(value) for value in values]
