"""Where a run comes from that was brought from elsewhere: what made it, and when it came."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from tfm_core.data.own.sets import MOST_NAME
from tfm_core.reading import Unreadable, is_device, is_line, is_moment, object_of
from tfm_core.runs.atomic import write_json

FILE = "origin.json"
_MOST_BYTES, _MOST_VERSIONS, _MOST_WORD = 2**14, 20, 80


@dataclass(frozen=True, slots=True)
class Origin:
    """What a run was where it was trained; ``created`` and ``brought`` are ISO 8601, UTC.

    versions: of the app, Python and the packages that decide about numbers, by name. data: what
    the set of one's own is called that it learned from, "" where it learned from none.
    """

    id: str
    created: str
    brought: str
    device: str
    versions: dict[str, str]
    data: str = ""


def write(folder: Path, origin: Origin) -> None:
    """Write it into a run's folder. Raises OSError."""
    write_json(folder / FILE, dataclasses.asdict(origin), lasting=True)


def read(folder: Path) -> Origin | None:
    """Return where a run comes from; None for one that began here, or that does not say it well."""
    try:
        values = object_of(folder / FILE, most=_MOST_BYTES)
    except (FileNotFoundError, Unreadable):
        return None
    found = [values.get(name) for name in ("id", "created", "brought", "device")]
    run_id, created, brought, device = found
    versions = values.get("versions")
    if not (
        is_line(run_id, _MOST_WORD)
        and is_moment(created)
        and is_moment(brought)
        and is_device(device)
        and are_versions(versions)
    ):
        return None
    assert isinstance(versions, dict)
    data = values.get("data")
    return Origin(run_id, created, brought, device, versions, data if is_data(data) else "")


def is_data(value: object) -> TypeGuard[str]:
    """Say whether a value may be what a set is called, or ""."""
    return value == "" or is_line(value, MOST_NAME)


def are_versions(value: object) -> bool:
    """Say whether a value names versions by package, a few and in short."""
    return (
        isinstance(value, dict)
        and len(value) <= _MOST_VERSIONS
        and all(
            is_line(name, _MOST_WORD) and is_line(said, _MOST_WORD) for name, said in value.items()
        )
    )
