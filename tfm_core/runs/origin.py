"""Where a run comes from that was brought from elsewhere: what made it, and when it came."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from tfm_core.reading import Unreadable, is_device, is_line, is_moment, object_of
from tfm_core.runs.atomic import write_json

FILE = "origin.json"
_MOST_BYTES, _MOST_VERSIONS, _MOST_WORD = 2**14, 20, 80


@dataclass(frozen=True, slots=True)
class Origin:
    """What a run was where it was trained; ``created`` and ``brought`` are ISO 8601, UTC.

    versions: of the app, Python and the packages that decide about numbers, by name.
    """

    id: str
    created: str
    brought: str
    device: str
    versions: dict[str, str]


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
    return Origin(run_id, created, brought, device, versions)


def are_versions(value: object) -> bool:
    """Say whether a value names versions by package, a few and in short."""
    return (
        isinstance(value, dict)
        and len(value) <= _MOST_VERSIONS
        and all(
            is_line(name, _MOST_WORD) and is_line(said, _MOST_WORD) for name, said in value.items()
        )
    )
