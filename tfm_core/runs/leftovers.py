"""What a killed worker leaves in its run's folder, swept up by the next one as it begins.

``sweep`` does so, too, after a while, where no next one comes.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from tfm_core.runs import claim, weights
from tfm_core.runs.sweep import BESIDE

_PARTS = ("snapshots", weights.FOLDER, "checkpoints/last", "checkpoints/best", claim.FOLDER)
_OWN = re.compile(r"\.(status|best|probe)\..+")
"""Beside them lie names and requests, which others may just be writing."""


def clear(folder: Path) -> None:
    """Remove what earlier workers of a run left half done. Only its holder may. Never raises."""
    left = [path for path in _files(folder) if _OWN.fullmatch(path.name)]
    for part in _PARTS:
        left += _files(folder / part)
    for path in left:
        if BESIDE.fullmatch(path.name):
            with contextlib.suppress(OSError):
                path.unlink()


def _files(folder: Path) -> Iterator[Path]:
    """Yield what lies in a folder, unless a link leads to it."""
    with contextlib.suppress(OSError):
        if not folder.is_symlink():
            yield from map(folder.joinpath, os.listdir(folder))
