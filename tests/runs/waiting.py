"""Waiting for another process, with a deadline."""

import time
from collections.abc import Callable

from tfm_core.config import Experiment

DEADLINE_SECONDS = 180.0


def wait_until(condition: Callable[[], object], what: str, seconds: float = DEADLINE_SECONDS):
    """Return the first true value of a condition; fail when none comes in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"waited {seconds:g} s in vain: {what}")


def tiny(steps: int = 7, **training: object) -> Experiment:
    """Return an experiment whose steps take about two milliseconds."""
    return Experiment.parse(
        {
            "model": {
                "family": "encoder-decoder",
                "d_model": 8,
                "n_heads": 2,
                "d_ff": 11,
                "dropout": 0.1,
            },
            "task": {
                "kind": "text",
                "name": "copy",
                "size": 3,
                "n_train": 40,
                "n_validation": 11,
                "n_test": 13,
            },
            "training": {
                "steps": steps,
                "batch_size": 5,
                "validate_every": 3,
                "snapshots": 5,
                **training,
            },
        }
    )
