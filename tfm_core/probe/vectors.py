"""What the attention map of a look was computed from, as files keep it: names, shapes, numbers.

``tfm_core.looking.vectors`` says what each name means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tfm_core.probe.types import Array
from tfm_core.sentences import N_

NAMES = ("query", "key", "value", "divisor", "output", "bias", "rest")
_NEEDED = NAMES[:5]
_MAX_WIDTH = 2**16


def problem_of(found: Mapping[str, Array], shape: Sequence[int]) -> str:
    """Return what is wrong with vectors of weights of a shape, in a clause, or "".

    shape: (batch, n_heads, query_len, key_len).
    """
    batch, n_heads, n_queries, n_keys = shape
    if missing := [name for name in _NEEDED if name not in found]:
        return N_("no {name}", name=missing[0])
    width, depth = (found[name].shape[-1:] for name in ("query", "value"))
    wanted: dict[str, tuple[int, ...]] = {
        "query": (batch, n_heads, n_queries, *width),
        "key": (batch, n_heads, n_keys, *width),
        "value": (batch, n_heads, n_keys, *depth),
        "output": (batch, n_heads, n_queries, *depth),
        "rest": (batch, n_heads, n_queries),
        "divisor": (),
    }
    for name, values in found.items():
        if values.dtype != np.float32:
            return N_("a {name} that is not float32", name=name)
        is_bias = name == "bias" and values.ndim == 4
        fits = (
            all(size in (1, full) for size, full in zip(values.shape, shape, strict=True))
            if is_bias
            else values.shape == wanted.get(name)
        )
        if not fits or not values.size or max(values.shape, default=1) > _MAX_WIDTH:
            return N_("a {name} of another shape", name=name)
        is_sound = ~np.isnan(values) & (values < np.inf) if name == "rest" else np.isfinite(values)
        if not is_sound.all() or (name == "divisor" and not values):
            return N_("a {name} that is no number", name=name)
    return ""
