"""The step that the page opens with: a small translator and plain gradient descent."""

from __future__ import annotations

from functools import cache

from tfm_core.config import Experiment
from tfm_core.presets import PRESETS


@cache
def example() -> Experiment:
    """Return a translator that learns by w - lr * g alone: no momentum, decay or clipping."""
    base = PRESETS["translate"].experiment
    model = {"d_model": 32, "n_heads": 2, "d_ff": 64}
    training = {
        "optimizer": "sgd", "beta1": 0.0, "learning_rate": 0.2, "schedule": "constant",
        "warmup": 0.0, "weight_decay": 0.0, "clip_norm": 0.0, "batch_size": 16,
    }  # fmt: skip
    return base.replace(
        model=base.model.replace(**model).model_dump(),
        training=base.training.replace(**training).model_dump(),
    )
