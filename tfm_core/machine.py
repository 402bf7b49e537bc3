"""How fast this machine is, beside the one on which the presets' times were measured.

A short piece of the arithmetic that tiny models are made of (small matrix products and
element-wise work), timed with numpy, so that a page can ask without loading torch.
"""

from __future__ import annotations

import time
from functools import lru_cache

import numpy as np

REFERENCE_SECONDS = 0.0050
"""What the piece took on one quiet core of the machine that the presets were measured on."""


@lru_cache(maxsize=1)
def slowness() -> float:
    """Return how many times as long as there things take here; measured once, in about 0.1 s.

    Only the processor time of this thread counts: pages that are drawn meanwhile are no slowness.
    """
    return min(_piece() for _ in range(7)) / REFERENCE_SECONDS


def _piece() -> float:
    generator = np.random.default_rng(0)
    tokens = generator.standard_normal((2048, 64), np.float32)
    wide = generator.standard_normal((64, 128), np.float32)
    narrow = generator.standard_normal((128, 64), np.float32)
    begin = time.thread_time()
    for _ in range(4):
        hidden = np.maximum(tokens @ wide, 0.0)
        out = hidden @ narrow
        np.exp(out - out.max(-1, keepdims=True)).sum(-1)
    return time.thread_time() - begin
