"""Which run trains on which GPU of this machine: each has one of its own.

Two on one GPU would share its memory and each wait for the other, while another GPU is idle.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import cache
from pathlib import Path

from tfm_core.runs.backends.backend import Unavailable
from tfm_core.runs.process import this_host
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.training import gpu_helper

logger = logging.getLogger(__name__)


@cache
def here() -> tuple[str, ...]:
    """Return the names of the NVIDIA GPUs of this machine; looked for once, which takes seconds."""
    try:
        found = gpu_helper.devices()
    except RuntimeError:  # whoever trains says what is wrong with them
        logger.exception("The GPUs of this machine could not be counted.")
        return ()
    return tuple(one.name for one in found if one.available and one.name.startswith("cuda"))


def device_for(run: Run, root: Path) -> str:
    """Return the device that a waiting run of a folder gets: its own, or another GPU that is free.

    Raises Unavailable where runs of this machine have all GPUs.
    """
    wanted = run.meta.device
    if not wanted.startswith("cuda") or run.damage is not None or wanted not in here():
        return wanted  # what is not there its worker refuses
    free = [name for name in here() if name not in _taken(run, root)]
    if not free:
        raise Unavailable(
            "It waits for a GPU: each of the {n} here has a run that trains or is paused.",
            n=len(here()),
        )
    return wanted if wanted in free else free[0]


def _taken(run: Run, root: Path) -> Collection[str]:
    """Return the devices of the other runs that this machine trains."""
    others = [other.status for other in RunStore(root).kept() if other.id != run.id]
    return {one.device for one in others if one.is_alive and one.host == this_host()}
