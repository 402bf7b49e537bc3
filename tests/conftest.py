"""Every test begins alike, whatever ran before it and however many cores there are."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _a_fresh_start() -> None:
    """Set what torch keeps for the whole process: seed, threads (one, as in the app), denormals.

    Whatever trains in the process of the tests changes them.
    """
    if "torch" not in sys.modules:  # then nobody has changed it
        return
    import torch  # waits where a thread of a page is still importing it

    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_flush_denormal(False)
