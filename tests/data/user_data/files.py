"""Files as people upload them, made small: zips of pictures, IDX, tables, NumPy archives."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from collections.abc import Iterable, Mapping

import numpy as np
from PIL import Image

from tfm_core.data.user_data.pictures import PictureForm
from tfm_core.data.user_data.pictures_zip import inspect_pictures
from tfm_core.data.user_data.uploads import GUESSED, Item, ReadAs, Report
from tfm_core.sentences import StudentError


def reasons(found: Report) -> tuple[str, ...]:
    """Return why items are skipped."""
    return tuple(item.reason for item in found.skipped)


def sentences(found: Report, level: str = "") -> tuple[str, ...]:
    """Return the findings of a level, or of any."""
    return tuple(one.sentence for one in found.findings if level in {"", one.level})


def labels_of(found: Report) -> list[int]:
    """Return the place of the class of each picture."""
    classes = list(found.balance)
    return [classes.index(item.label) for item in found.items]


def splits_of(found: Report) -> list[int | None]:
    """Return the split of each picture, None where the upload names none."""
    return [item.split for item in found.items]


def read_pictures(
    files: Iterable[tuple[str, bytes]], form: PictureForm, choices: ReadAs = GUESSED
) -> Report:
    """Return pictures as read. Raises ValueError where they are refused."""
    found = inspect_pictures(tuple(files), form, choices)
    if found.refusal is not None:
        raise StudentError(found.refusal)
    return found


def pictures_report(
    images: np.ndarray, labels: Iterable[int], names: tuple[str, ...] = ("a", "b")
) -> Report:
    """Return pictures (N, C, size, size) with the places of their classes as a report."""
    items = [
        Item(image.astype(np.uint8), names[label], name=f"{at}.png")
        for at, (image, label) in enumerate(zip(images, labels, strict=True))
    ]
    return Report("pictures", "", {"by": "seed"}, tuple(items))


def png(values: np.ndarray, form: str = "PNG") -> bytes:
    """Return uint8 (H, W) or (H, W, 3) as a file."""
    file = io.BytesIO()
    Image.fromarray(values).save(file, form)
    return file.getvalue()


def stripes(n: int, *, seed: int = 0, height: int = 20, width: int = 20) -> dict[str, bytes]:
    """Return ``n`` pictures of each of two classes, bars that lie or stand, by path."""
    rng = np.random.default_rng(seed)
    found = {}
    for at in range(n):
        for name in ("lying", "standing"):
            values = rng.integers(0, 60, (height, width)).astype(np.uint8)
            place = rng.integers(3, 12)
            rows = slice(place, place + 4)
            values[rows if name == "lying" else slice(None)][
                :, slice(None) if name == "lying" else rows
            ] = 250
            found[f"bars/{name}/{at}.png"] = png(values)
    return found


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of files by path."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return file.getvalue()


def idx(values: np.ndarray, *, zipped: bool = False) -> bytes:
    """Return uint8 values as an IDX file."""
    shape = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    content = shape + values.astype(np.uint8).tobytes()
    return gzip.compress(content) if zipped else content


def npz(**arrays: np.ndarray) -> bytes:
    """Return arrays as a NumPy archive."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def table(rows: Iterable[Iterable[object]], header: Iterable[str] = ()) -> bytes:
    """Return rows with commas, a header above them."""
    return "".join(",".join(map(str, row)) + "\n" for row in (header, *rows) if row).encode()


class Unflagged(zipfile.ZipInfo):
    """An entry whose name is written as bytes, without the flag for UTF-8."""

    raw = b""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:
        return self.raw, 0


def unflagged(files: Mapping[bytes, bytes]) -> bytes:
    """Return a zip of files by the bytes of their names."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for raw, content in files.items():
            entry = Unflagged(raw.hex())
            entry.raw = raw
            archive.writestr(entry, content)
    return file.getvalue()


def as_windows_packs(folders: Iterable[str], encoding: str) -> bytes:
    """Return a zip of three pictures a folder, whose names are in an encoding it does not name."""
    return unflagged(
        {
            f"set/{folder}/{at}.png".encode(encoding): png(np.full((9, 9), 50 * at, np.uint8))
            for folder in folders
            for at in range(3)
        }
    )
