"""What the commands share: their exit codes, and the store that runs are kept in elsewhere."""

from __future__ import annotations

import sys

from tfm_core.runs import RunStore
from tfm_core.runs.remote import mirror

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130


def compare() -> None:
    """Publish and fetch runs where there is a store (TFM_RUNS_URL); say what keeps it from that."""
    trouble = mirror.once(RunStore().root)
    if trouble is not None:
        print(trouble, file=sys.stderr)
