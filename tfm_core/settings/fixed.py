"""Limits that no variable changes: more is allowed on one's own machine than to strangers."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class FixedLimits:
    """Upper limits; None: no limit.

    max_queued: runs that wait. max_per_session: runs of one visitor that train or wait, resumed
    ones included. max_pause: seconds that a paused run keeps its place while others wait; then it
    is stopped. max_attention: attention weights in a snapshot (2 bytes each: layers × heads ×
    tokens² × examples), beyond which fewer examples are kept. max_weights: bytes of a run's weights
    at some of its steps; a run with larger weights keeps none. max_runs: runs that are kept.
    max_own_data: bytes of the data sets that visitors add.
    """

    max_queued: int = 100
    max_per_session: int = 8
    max_steps: int | None = None
    max_parameters: int | None = None
    max_pause: int = 600
    max_attention: int = 20_000_000
    max_weights: int = 16_000_000
    max_runs: int | None = None
    max_own_data: int | None = None


LOCAL = FixedLimits()
PUBLIC = replace(
    LOCAL,
    max_per_session=2,
    max_steps=20_000,
    max_parameters=5_000_000,
    max_pause=60,
    max_runs=1000,
    max_own_data=2_000_000_000,
)
