"""Read untrusted files: plain ones of a bounded size, and the values in them.

Uploads and run folders are untrusted input: every reader opens a file here, where its size is
limited before it is parsed, and validates each value. Each check returns a bool for any input and
never raises.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
import tomllib
import zipfile
from collections.abc import Iterator, ValuesView
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeGuard

from safetensors import SafetensorError, safe_open

from tfm_core.disk import patiently
from tfm_core.sentences import N_, StudentError

MAX_STEP_NUMBER = 10**9
"""The largest step number in a file; configurations take fewer."""
MAX_DEPTH = 40
"""Lists and tables of TOML inside each other; Python follows some hundred before it gives up."""
MAX_DOTS = 100
"""Dots in a line of TOML: ``tomllib`` keeps every beginning of a key, n²/2 names for n dots."""
MAX_ENTRIES = 1_000_000
"""Lists and objects of JSON; Python takes 30 times their bytes for empty ones."""
MAX_HEADER = 2**24
"""Bytes that say what is in a safetensors file; 100,000 tensors take about as many."""
MAX_TENSORS = 100_000
_POINTER = b"version https://git-lfs"
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
            content = file.read(most)
        except OSError as error:
            raise _cannot(path, error) from None
    _check_pointer(path, content)
    return content


def json_of(content: bytes | str) -> Any:
    """Return the value of JSON. Raises Unreadable where it is too large, and ValueError."""
    opening = ("[", "{") if isinstance(content, str) else (b"[", b"{")
    if sum(map(content.count, opening)) > MAX_ENTRIES:  # type: ignore[arg-type]  # both of a kind
        raise Unreadable("it has more than {most:,} lists and objects", most=MAX_ENTRIES)
    try:
        return json.loads(content)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:  # a whole number of more than 4,300 digits
        raise Unreadable(_LARGE_NUMBER) from None
    except RecursionError:
        raise Unreadable(_DEEP) from None


def object_of(path: Path, *, most: int) -> dict[str, Any]:
    """Return the JSON object in a file. Raises FileNotFoundError and Unreadable."""
    content = content_of(path, most=most)
    try:
        values = json_of(content)
    except ValueError:
        raise Unreadable("{name} is not JSON", name=path.name) from None
    if not isinstance(values, dict):
        raise Unreadable("{name} holds no named values", name=path.name)
    return values


def toml_of(text: str) -> dict[str, Any]:
    """Return the values of TOML. Raises Unreadable with a clause."""
    if max(line.count(".") for line in text.split("\n")) > MAX_DOTS:
        raise Unreadable("a line has more than {most} dots", most=MAX_DOTS)
    try:
        values = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise Unreadable("it is not TOML: {why}", why=str(error)) from None
    except ValueError:
        raise Unreadable(_LARGE_NUMBER) from None
    except RecursionError:
        raise Unreadable(_DEEP) from None
    level: list[Any] = [values]
    for _depth in range(MAX_DEPTH):
        if any(isinstance(one, int) and not -(2**63) <= one < 2**63 for one in level):
            raise Unreadable(_LARGE_NUMBER)
        within = [one.values() if isinstance(one, dict) else one for one in level]
        level = [part for one in within if isinstance(one, list | ValuesView) for part in one]
    if level:
        raise Unreadable(_DEEP)
    return values


@contextmanager
def open_tensors(path: Path, framework: Literal["numpy", "pt"] = "numpy") -> Iterator[Any]:
    """Open a plain safetensors file of a bounded header; what is read of it may be damaged.

    Raises FileNotFoundError, and Unreadable with a clause, for what the caller reads, too.
    """
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            check_header(path, file)
        with safe_open(path, framework=framework) as opened:
            yield opened
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _cannot(path, error) from None
    except (SafetensorError, TypeError):  # a number format that NumPy does not have
        raise Unreadable("{name} is damaged or incomplete", name=path.name) from None


def check_header(path: Path, file: BinaryIO) -> None:
    """Raise Unreadable where the header of a safetensors file is too large to be parsed."""
    start = file.read(len(_POINTER))
    _check_pointer(path, start)
    n_bytes = int.from_bytes(start[:8], "little")
    file.seek(8)
    if n_bytes > MAX_HEADER or file.read(n_bytes).count(b"{") > MAX_TENSORS:
        raise Unreadable("{name} has too many tensors, or is damaged", name=path.name)


def zip_of(content: bytes, *, most: int) -> zipfile.ZipFile:
    """Return a zip of at most ``most`` files. Raises Unreadable, and what ``zipfile`` raises."""
    if content.count(b"PK\1\2") > most:  # an entry of the directory, of which each costs 1 kB
        raise Unreadable("it has more than {most:,} files", most=most)
    return zipfile.ZipFile(io.BytesIO(content))


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


def _check_pointer(path: Path, content: bytes) -> None:
    if content.startswith(_POINTER):
        raise Unreadable(
            "{name} is a Git LFS pointer, not the file; “git lfs pull” fetches it",
            name=path.name,
        )


def _cannot(path: Path, error: OSError) -> Unreadable:
    return Unreadable("{name} cannot be read ({why})", name=path.name, why=error.strerror)


_LARGE_NUMBER = N_("a number is too large")
_DEEP = N_("it is nested too deeply")
_DEVICE = re.compile(r"[a-z]{2,12}(:\d{1,4})?", re.ASCII)
_HALVES = re.compile("[\ud800-\udfff]")
