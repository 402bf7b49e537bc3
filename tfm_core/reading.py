"""Read untrusted files: plain ones of a bounded size, and the values in them.

Run folders are untrusted input: every reader gets a file's content here and validates each value.
Each check returns a bool for any input and never raises.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeGuard

from tfm_core.disk import patiently
from tfm_core.sentences import StudentError

MAX_STEP_NUMBER = 10**9
"""The largest step number in a file; configurations take fewer."""
_ONLY_LOOK = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_FIRST_YEAR, _LAST_YEAR = 2000, 9000  # so that converting the zone cannot overflow


class Unreadable(StudentError):
    """A file cannot be read, or does not hold what it should; ``sentence`` is a clause on it."""


def open_plain(path: Path) -> int:
    """Open a plain file for reading and return its descriptor; never wait for anything else.

    A pipe would block its reader for ever, and a link may lead out of the folder. Raises
    FileNotFoundError where there is nothing, and Unreadable.
    """
    try:
        file = patiently(os.open, path, _ONLY_LOOK | _NO_LINKS)
    except FileNotFoundError:
        raise
    except OSError as error:
        if os.path.islink(path):  # total, as Path.is_symlink is not
            raise Unreadable("{name} is not a plain file", name=path.name) from None
        raise _cannot(path, error) from None
    is_followed = not _NO_LINKS and os.path.islink(path)  # Windows opens what a link leads to
    if is_followed or not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Unreadable("{name} is not a plain file", name=path.name)
    return file


def is_plain(path: Path) -> bool:
    """Return whether there is a plain file, and not a link to one."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:  # missing, or in an unreadable folder
        return False


def content_of(path: Path, *, most: int) -> bytes:
    """Return what stands in a plain file of at most ``most`` bytes.

    Raises FileNotFoundError where there is none, and Unreadable.
    """
    with os.fdopen(open_plain(path), "rb") as file:
        if (size := os.fstat(file.fileno()).st_size) > most:
            raise Unreadable(
                "{name} has {size:,} bytes; the limit is {most:,}",
                name=path.name,
                size=size,
                most=most,
            )
        try:
            return file.read(most)
        except OSError as error:
            raise _cannot(path, error) from None


def object_of(path: Path, *, most: int) -> dict[str, Any]:
    """Return the JSON object in a file. Raises FileNotFoundError and Unreadable."""
    content = content_of(path, most=most)
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):  # no Unicode, a number of too many digits, too deep
        raise Unreadable("{name} is not JSON", name=path.name) from None
    if not isinstance(values, dict):
        raise Unreadable("{name} holds no named values", name=path.name)
    return values


def is_whole(value: object, low: int, high: int) -> TypeGuard[int]:
    """Return whether a value is a whole number from ``low`` to ``high``."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_number(value: object, low: float, high: float) -> TypeGuard[float]:
    """Return whether a value is a finite number from ``low`` to ``high``."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and low <= value <= high
        and math.isfinite(value)
    )


def is_text(value: object, most: int) -> TypeGuard[str]:
    """Return whether a value is valid Unicode of at most ``most`` characters."""
    return isinstance(value, str) and len(value) <= most and _HALVES.search(value) is None


def is_line(value: object, most: int) -> TypeGuard[str]:
    """Return whether a value is one printable line that is not empty."""
    return isinstance(value, str) and 0 < len(value) <= most and value.isprintable()


def is_device(value: object) -> TypeGuard[str]:
    """Return whether a value is a device name such as ``cpu`` or ``cuda:1``."""
    return isinstance(value, str) and _DEVICE.fullmatch(value) is not None


def is_moment(value: object) -> TypeGuard[str]:
    """Return whether a value is an ISO 8601 time with a zone, in a plausible year."""
    if not is_line(value, 64):
        return False
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None or not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
            return False
        moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    return True


def _cannot(path: Path, error: OSError) -> Unreadable:
    return Unreadable("{name} cannot be read ({why})", name=path.name, why=error.strerror)


_DEVICE = re.compile(r"[a-z]{2,12}(:\d{1,4})?", re.ASCII)
_HALVES = re.compile("[\ud800-\udfff]")
