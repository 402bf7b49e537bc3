"""What is drawn anew for each commit: examples of hypothesis, and configurations of models.

All of it follows from one seed, the commit's or ``TFM_SEED``, which pytest prints. A configuration
that fails stands in the name of its test: it belongs into the fixed ones then.
"""

import os
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.nightly import IS_NIGHTLY

T = TypeVar("T")
EXAMPLES = 500 if IS_NIGHTLY else 25
"""What hypothesis tries in a test that names no number of its own."""


def _commit() -> str:
    command = ["git", "rev-parse", "HEAD"]
    try:
        said = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    except OSError:
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""


SEED = int(os.environ.get("TFM_SEED") or int(_commit()[:8] or "0", 16))


def header() -> str:
    """Return the line for the top of pytest's report."""
    return f"fresh examples: TFM_SEED={SEED}"


def draw_examples(config: pytest.Config) -> None:
    """Let hypothesis draw as many examples as the tier takes, by the seed; for conftest."""
    settings.register_profile(
        "fresh", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("fresh")
    if config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(SEED)


def some(fixed: Sequence[T], drawn: Callable[[int], Sequence[T]], n: int = 12) -> list[T]:
    """Return ``n`` of the fixed cases, spread evenly, and ``n`` that the seed draws; nightly all.

    drawn: returns the cases of a seed.
    """
    kept = list(fixed) if IS_NIGHTLY else [fixed[k * len(fixed) // n] for k in range(n)]
    fresh = [one for one in drawn(SEED) if one not in kept]
    if IS_NIGHTLY:
        return kept + fresh
    return kept + random.Random(SEED).sample(fresh, min(n, len(fresh)))


def spelled(value: Any) -> str | None:
    """Return settings as they stand in the name of a test; for ``ids``."""
    return (
        " ".join(f"{name}={one}" for name, one in value.items())
        if isinstance(value, dict)
        else None
    )
