"""An untrusted zip: its names are checked, and the size of each member is bounded.

Nothing is unpacked by name. A member is read into memory, up to the size that its reader allows.
Refused beforehand are unsafe or duplicate names, links, pickles, and zips that unpack to far more
than their size.
"""

from __future__ import annotations

import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import BinaryIO

from tfm_core.sentences import N_, Paragraph, StudentError, in_bytes

MAX_MEMBERS = 1_000
MAX_UNPACKED = 2**31
"""Bytes of all members together, unless the caller says less."""

MAX_RATIO = 200
"""Largest ratio of unpacked to packed size, for members above a megabyte."""

_MAX_NAME = 200
_MAX_DIRECTORY = 400 * MAX_MEMBERS  # bytes that say what is in a zip
_END = struct.Struct("<4s4H2LH")
_END_MARK, _END_64_MARK, _END_64_BYTES = b"PK\x05\x06", b"PK\x06\x07", 20
_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".bin", ".joblib")
_MEGABYTE = 1_000_000


class Refused(StudentError):
    """A zip cannot be imported; the message says why."""


class Archive:
    """A zip whose names and sizes are checked; ``read`` returns a member."""

    def __init__(self, file: BinaryIO, *, most: int = MAX_UNPACKED, marked_by: str = "") -> None:
        """Open and check. most: bytes of all members, unpacked.

        marked_by: a member that lies at the top; where all lie in one folder, that is the top.
        Raises Refused.
        """
        _check_end(file)
        try:
            self._zip = zipfile.ZipFile(file)
            infos = self._zip.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, struct.error, NotImplementedError):
            raise Refused(_DAMAGED) from None
        if len(infos) > MAX_MEMBERS:
            raise Refused(_MANY)
        _check_names(infos)
        _check_sizes(infos, file, most)
        self._members = {one.filename: one for one in infos if not one.is_dir()}
        self._top = self._top_of(marked_by)

    def _top_of(self, mark: str) -> str:
        """Return the folder in which all lies, as when it was unpacked and packed again."""
        if mark in self._members:
            return ""
        marked = [name for name in self._members if name.count("/") == 1 and name.endswith(mark)]
        return marked[0].removesuffix(mark) if len(marked) == 1 and mark else ""

    @property
    def names(self) -> list[str]:
        """The members below its top folder."""
        inside = [name for name in self._members if name.startswith(self._top)]
        return [name.removeprefix(self._top) for name in inside]

    def __contains__(self, name: str) -> bool:
        """Return whether there is a member of this name."""
        return self._top + name in self._members

    def read(self, name: str, *, most: int) -> bytes:
        """Return what a member holds. Raises Refused where it is more than ``most``, or damaged."""
        info = self._members[self._top + name]
        if info.file_size > most:
            raise Refused(
                "{name} has {size}; the limit is {most}.",
                name=name,
                size=in_bytes(info.file_size),
                most=in_bytes(most),
            )
        try:
            with self._zip.open(info) as member:
                content = member.read(most + 1)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError):
            raise Refused("{name} is damaged.", name=name) from None
        if len(content) != info.file_size:
            raise Refused("{name} is damaged.", name=name)
        return content


_DAMAGED = N_("This is not a readable zip file.")
_MANY = N_("This zip has more files than a run.")


def _check_end(file: BinaryIO) -> None:
    """Refuse, before anything is read into memory, a list of members that is too long."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END.size - _END_64_BYTES))
    tail = file.read()
    file.seek(0)
    if len(tail) < _END.size or not tail[-_END.size :].startswith(_END_MARK):
        raise Refused(_DAMAGED)
    *_, n_members, directory_bytes, _at, comment = _END.unpack(tail[-_END.size :])
    if tail[: -_END.size].startswith(_END_64_MARK):
        raise Refused("This zip uses the format for files above 4 GB; runs are smaller.")
    if comment:
        raise Refused(_DAMAGED)
    if n_members > MAX_MEMBERS or directory_bytes > _MAX_DIRECTORY:
        raise Refused(_MANY)


def _check_names(infos: list[zipfile.ZipInfo]) -> None:
    is_folder: dict[str, bool] = {}
    for info in infos:
        _check_entry(info)
        plain = unicodedata.normalize("NFC", info.filename.rstrip("/")).casefold()
        if plain in is_folder:
            raise Refused(
                "{name} appears twice, or two names differ only in case.", name=info.filename
            )
        is_folder[plain] = info.is_dir()
    for name in is_folder:
        if any(is_folder.get(str(parent)) is False for parent in PurePosixPath(name).parents):
            raise Refused("{name} lies inside another file.", name=name)


def _check_entry(info: zipfile.ZipInfo) -> None:
    name = info.filename
    if not _is_inside(info):
        raise Refused("This zip has an unsafe file name: {name!r}.", name=name[:_MAX_NAME])
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Refused("{name} is a link or a device, not a file.", name=name)
    if name.lower().endswith(_PICKLES):
        raise Refused(Paragraph("export/pickle", name=name))
    if info.flag_bits & 1:
        raise Refused("{name} is encrypted. Pack it without a password.", name=name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused("{name} uses an unsupported compression.", name=name)


# names that Windows keeps for devices
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *", re.IGNORECASE)


def _is_inside(info: zipfile.ZipInfo) -> bool:
    """Return whether a name is a path below the zip, the same on every system."""
    name = info.filename.removesuffix("/")
    return (
        0 < len(name) <= _MAX_NAME
        and info.orig_filename == info.filename
        and name.isprintable()
        and not set(name) & set('\\:*?"<>|')
        and all(
            part and part[-1] not in ". " and not _DEVICE.fullmatch(part.partition(".")[0])
            for part in name.split("/")
        )
    )


def _check_sizes(infos: list[zipfile.ZipInfo], file: BinaryIO, limit: int) -> None:
    packed = file.seek(0, 2)
    total = sum(info.file_size for info in infos)
    if total > limit:
        raise Refused(
            "This zip unpacks to {total}; the limit is {most}.",
            total=in_bytes(total),
            most=in_bytes(limit),
        )
    if sum(info.compress_size for info in infos) > packed:
        raise Refused(_DAMAGED)  # members that share their bytes
    for info in infos:
        is_large = info.file_size > _MEGABYTE
        if is_large and info.file_size > MAX_RATIO * max(1, info.compress_size):
            raise Refused(
                "{name} unpacks to {ratio:,} times its size, more than any file of a run.",
                name=info.filename,
                ratio=info.file_size // max(1, info.compress_size),
            )
