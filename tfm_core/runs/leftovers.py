"""What killed processes leave in a run's folder: files that were never given their name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tfm_core.runs import claim

_OTHERS_SECONDS = 60.0
"""Others than the holder write requests and names, too; theirs are left alone for so long."""


def sweep(folder: Path) -> None:
    """Remove what earlier holders of a run left half done. Only its holder may. Never raises."""
    own = [
        *_hidden(folder, "status.json.", "best.json.", "probe.json.", "probe.safetensors."),
        *_hidden(folder / "snapshots", ""),
        *_hidden(folder / claim.FOLDER, ""),
        *(path for name in ("last", "best") for path in _new(folder / "checkpoints" / name)),
    ]
    for path in own:
        with contextlib.suppress(OSError):
            path.unlink()
    newest = _newest(folder)
    for path in (*_hidden(folder, "meta.json."), *_hidden(folder / "requests", "")):
        with contextlib.suppress(OSError):
            if newest - path.stat().st_mtime > _OTHERS_SECONDS:
                path.unlink()


def _hidden(folder: Path, *begins: str) -> Iterator[Path]:
    """Yield the files whose name is a dot and a beginning (see ``atomic.write_bytes``)."""
    for name in _names(folder):
        if any(name.startswith(f".{begin}") for begin in begins):
            yield folder / name


def _new(folder: Path) -> Iterator[Path]:
    """Yield the checkpoints that were not written to their end."""
    return (folder / name for name in _names(folder) if name.endswith(".new"))


def _names(folder: Path) -> list[str]:
    try:
        return [] if os.path.islink(folder) else os.listdir(folder)
    except OSError:
        return []


def _newest(folder: Path) -> float:
    """Return the time of what was written last, by the clock of the disk: the claim just taken."""
    try:
        return (folder / claim.FOLDER).stat().st_mtime
    except OSError:
        return 0.0
