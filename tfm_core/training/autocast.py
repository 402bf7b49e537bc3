"""Mixed precision: the context in which forward passes run (Micikevicius et al. 2018)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from tfm_core.variants.precisions import PRECISIONS


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return the context of a precision, by its name, on a device."""
    kind = PRECISIONS[precision].autocast
    if kind is None:
        return nullcontext()
    return torch.autocast(device.type, dtype=getattr(torch, kind))
