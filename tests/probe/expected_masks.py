"""The masks of examples, cell by cell from their definition and apart from the code under test."""

import numpy as np

from tfm_core.probe.labels import axes, kind_of

SEES = {
    "causal": lambda query, key: key <= query,
    "none": lambda query, key: True,
    "transposed": lambda query, key: key >= query,
}


def expected_mask(experiment, item, module):
    """Return bool (Q, K), True = may attend: order where tokens are written, window, no slots."""
    kind = kind_of(experiment, module).name
    shape = axes(experiment, item, module).shape
    window = getattr(experiment.model, "window", 0)
    is_causal = kind in {"decoder", "sequence", "text"}
    mask = np.zeros(shape, bool)
    for query, key in np.ndindex(shape):
        mask[query, key] = (
            (not is_causal or SEES[experiment.model.causality](query, key))
            and (kind != "slots" or key < len(item["src"]))
            and (not window or kind in {"cross", "picture"} or abs(query - key) <= window)
        )
    return mask


def expected_masks(experiment, items, module):
    """Return bool (P, Q, K) of examples, padded with False to the longest."""
    masks = [expected_mask(experiment, item, module) for item in items]
    padded = np.zeros((len(items), *np.max([mask.shape for mask in masks], axis=0)), bool)
    for whole, mask in zip(padded, masks, strict=True):
        whole[: mask.shape[0], : mask.shape[1]] = mask
    return padded
