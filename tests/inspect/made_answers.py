"""Answers made by hand."""

import numpy as np

from tfm_core.inspect.answers import Answers


def made(truth: list[int], predicted: list[int], n_classes: int, **changes: object) -> Answers:
    """Return answers, one an example, with different confidences and losses."""
    n = len(truth)
    values = {
        "step": 7,
        "n_examples": n,
        "n_all": n,
        "unit": "picture",
        "names": tuple(f"class {number}" for number in range(n_classes)),
        "truth": np.array(truth),
        "predicted": np.array(predicted),
        "confidence": np.linspace(0.3, 0.9, n).astype(np.float32),
        "loss": np.linspace(2.0, 0.1, n).astype(np.float32),
        "example": np.arange(n),
        "position": np.zeros(n, np.int64),
        "items": tuple({} for _ in range(n)),
        "train_counts": np.arange(n_classes),
    }
    return Answers(**{**values, **changes})
