"""Where a run comes from that was brought from elsewhere: what made it, and when it came."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tfm_core.data.user_data.sets import MAX_NAME
from tfm_core.reading import Unreadable, is_line, object_of
from tfm_core.runs.disk.atomic import write_json
from tfm_core.stored import Device, Moment, Stored, checked, line

FILE = "origin.json"
_MAX_BYTES, _MAX_VERSIONS, _MAX_WORD = 2**14, 20, 80

Word = Annotated[str, line(_MAX_WORD)]
Versions = Annotated[dict[Word, Word], Field(max_length=_MAX_VERSIONS)]
DataName = Annotated[str, checked(lambda value: value == "" or is_line(value, MAX_NAME))]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a run was where it was trained; ``created`` and ``brought`` are ISO 8601, UTC.

    versions: of the app, Python and the packages that decide about numbers, by name. data: what
    the set of one's own is called that it learned from, "" where it learned from none.
    """

    id: Word
    created: Moment
    brought: Moment
    device: Device
    versions: Versions
    data: DataName = ""


def write(folder: Path, origin: Origin) -> None:
    """Write it into a run's folder. Raises OSError."""
    write_json(folder / FILE, dataclasses.asdict(origin), lasting=True)


def read(folder: Path) -> Origin | None:
    """Return where a run comes from; None for one that began here, or that does not say it well."""
    try:
        return _STORED.salvage(object_of(folder / FILE, most=_MAX_BYTES))[0]
    except (FileNotFoundError, Unreadable):
        return None


_STORED = Stored(Origin, FILE)
