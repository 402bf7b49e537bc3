"""A little room that each run's folder keeps back, so that on a full disk it can still say so.

A file of two blocks lies in the folder from the start; where a last word cannot be written, it is
given up for it. The next worker lays it in again.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE = "spare"
_BYTES = 8192


def keep(folder: Path) -> None:
    """Lay the spare room in, unless it is there. Raises OSError."""
    if not (folder / FILE).exists():
        # random: a disk that compresses would keep no room for zeros
        try:
            (folder / FILE).write_bytes(os.urandom(_BYTES))
        except OSError:
            give_up(folder)
            raise


def give_up(folder: Path) -> bool:
    """Free the spare room; say whether there was any. Never raises."""
    try:
        (folder / FILE).unlink()
    except OSError:
        return False
    return True
