"""Waiting for another process, with a deadline."""

import time
from collections.abc import Callable

from tfm_core.choices.config import Experiment

DEADLINE_SECONDS = 180.0
REST_SHARE, SHORTEST_REST, LONGEST_REST = 4, 0.005, 0.25
"""Between two checks: so many times as long as a check takes, in these bounds of seconds."""


def wait_until(condition: Callable[[], object], what: str, seconds: float = DEADLINE_SECONDS):
    """Return the first true value of a condition; fail when none comes in time.

    Checking takes a fifth of a core at most: the process that is waited for needs it.
    """
    end = time.monotonic() + seconds
    while (begin := time.monotonic()) < end:
        value = condition()
        if value:
            return value
        rest = REST_SHARE * (time.monotonic() - begin)
        time.sleep(min(max(rest, SHORTEST_REST), LONGEST_REST))
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
