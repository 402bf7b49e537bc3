"""Custom pictures: a zip of folders by class, IDX, npz or a table, made one size and colour.

All become squares of one size, grey or coloured. Changes and skipped files are reported.
"""

from __future__ import annotations

import re
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from tfm_core.config.own_pictures import MARKUP, MAX_CLASSES, MAX_NAME
from tfm_core.data.own_picture import flattened
from tfm_core.sentences import N_, StudentError
from tfm_core.variants.record import Registry, Variant

if TYPE_CHECKING:
    from PIL import Image

SIZES = (16, 20, 24, 28, 32, 36, 40, 48, 56, 64)
"""Allowed sides in pixels; 4 divides each, as a patch size."""
MAX_PICTURES = 70_000
MAX_LINES = MAX_FILES = 2 * MAX_PICTURES
"""Of a table and in a zip, whether they hold pictures or not."""
MAX_COLUMNS = 2**20
MAX_PIXELS = 64_000_000
"""Values of all pictures of a set together, as they are stored."""
MAX_UNPACKED = 400_000_000
"""Bytes of an unpacked upload."""
MAX_DECODED = 2_000_000_000
"""Pixels decoded of one upload, before resizing: some twenty seconds."""
MAX_LISTED = 50
"""Skipped files that are named; the rest is counted."""

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
_PART_NAMES: dict[str, Part] = {
    **dict.fromkeys(("train", "training", "trainset"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "valset", "dev"), "validation"),
    **dict.fromkeys(("test", "testing", "testset", "t10k"), "test"),
}

_PART_SIGNS: dict[str, Part] = {
    **dict.fromkeys(("학습", "훈련", "训练", "訓練", "学習"), "train"),
    **dict.fromkeys(("검증", "验证", "驗證", "検証"), "validation"),
    **dict.fromkeys(("테스트", "测试", "測試", "テスト"), "test"),
}
"""Words of languages that are written without spaces."""

Folders = Literal["splits", "classes"]
Grid = npt.NDArray[np.uint8]
_DROPPED = MARKUP.replace("_", "")
ZIP_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)
"""What reading a damaged zip, or a member of one, raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(Variant):
    """How a non-square picture becomes a square."""


FITS = Registry(
    "way to make a square",
    Fit(
        name="middle",
        label=N_("Crop to centre"),
        help=N_("Keeps the centre square."),
        source="ImageNet's usual centre crop",
    ),
    Fit(
        name="whole",
        label=N_("Pad to square"),
        help=N_("Keeps the whole picture and fills the sides with its border colour."),
        source="letterboxing, as in YOLO",
    ),
)


@dataclass(frozen=True, slots=True)
class PictureForm:
    """What pictures are made: squares of ``size`` pixels, grey or coloured."""

    size: int = 28
    is_grey: bool = True
    fit: str = "middle"

    def __post_init__(self) -> None:
        """Reject an unsupported size."""
        if self.size not in SIZES:
            raise StudentError(
                "{size} pixels is not a valid size; choose one of {sizes}.",
                size=self.size,
                sizes=", ".join(map(str, SIZES)),
            )

    @property
    def channels(self) -> int:
        """1 for grey pictures, 3 for coloured ones."""
        return 1 if self.is_grey else 3


@dataclass(frozen=True, slots=True)
class ReadingChoices:
    """How to read an upload that can be read in more than one way.

    folders: whether the outer folders are splits or classes. encoding: of file names, a key of
    ``ENCODINGS``. is_turned: whether rows and columns of each picture are swapped, as in EMNIST.

    Given to a reader, None leaves the choice to it; in ``Pictures.understood``, None says that
    there is nothing to choose.
    """

    folders: Folders | None = None
    encoding: str | None = None
    is_turned: bool | None = None


GUESSED = ReadingChoices()
"""Every choice is left to the reader."""


@dataclass(frozen=True, slots=True, eq=False)
class Pictures:
    """Pictures as read: uint8 (N, C, size, size), and the index of each one's class (N,).

    names: where each came from. parts: the split that its folder or file names, as an index of
    ``PARTS``; None where nothing names one. left_out: messages on skipped files and lines, and
    n_left_out how many there are; n_system: files that an operating system adds. Every file or line
    of the upload is a picture or counted in one of the two. notes: changes of the pictures.
    warnings: on the upload as a whole. understood: how it was read; folder_names: the folders that
    ``understood.folders`` is about.
    """

    images: Grid
    labels: npt.NDArray[np.int64]
    class_names: tuple[str, ...]
    names: tuple[str, ...]
    parts: npt.NDArray[np.int8] | None = None
    left_out: tuple[str, ...] = ()
    n_left_out: int = 0
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    n_system: int = 0
    understood: ReadingChoices = GUESSED
    folder_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.labels)


@dataclass(slots=True)
class LeftOut:
    """Skipped files: the first ones with their reasons, the rest counted."""

    sentences: list[str] = field(default_factory=list)
    n: int = 0

    def add(self, name: str, why: str, *, n: int = 1) -> None:
        """Note a file, or ``n`` of them, and why it was left out."""
        self.n += n
        if len(self.sentences) < MAX_LISTED:
            self.sentences.append(N_("{name}: {why}", name=shown(name), why=why))


def shown(name: str) -> str:
    """Return a file's name, printable and at most 80 characters long."""
    plain = _printable(name)
    return plain if len(plain) <= 80 else f"…{plain[-79:]}"


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def part_of(name: str) -> Part | None:
    """Return the split in a folder's or file's name: ``seg_train``, ``t10k-images``.

    None where no word of it says one, or its words say different ones.
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold()
    words = re.findall(r"[a-z]+[0-9]+[a-z]+|[a-z]+", spaced)
    parts = {_PART_NAMES[word] for word in words if word in _PART_NAMES}
    parts |= {part for sign, part in _PART_SIGNS.items() if sign in name}
    return parts.pop() if len(parts) == 1 else None


def class_order(names: Sequence[str]) -> tuple[str, ...]:
    """Return the different names in the order a person expects: 2 before 10."""

    def key(name: str) -> list[tuple[int, int, str]]:
        pieces = re.findall(r"\d+|\D+", name)
        return [(0, int(p), p) if p.isdecimal() else (1, 0, p.casefold()) for p in pieces]

    return tuple(sorted(set(names), key=lambda name: (key(name), name)))


def class_labels(folders: Iterable[str]) -> dict[str, str]:
    """Return the class name of each folder: printable and unique."""
    labels: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        name = class_label(folder) or "?"
        number = 2
        while name in labels.values():
            name = f"{name[: MAX_NAME - 4]} {number}"
            number += 1
        labels[folder] = name
    return labels


def class_label(text: str) -> str:
    """Return a text as the name of a class: in NFC, in one line, without markup."""
    cleaned = "".join(" " if one == "_" else one for one in text if one not in _DROPPED)
    plain = unicodedata.normalize("NFC", _printable(cleaned))
    return " ".join(plain.split())[:MAX_NAME].strip()


def check_n_pictures(n: int, form: PictureForm) -> None:
    """Raise StudentError for more pictures than a set may have."""
    fits = min(MAX_PICTURES, MAX_PIXELS // (form.channels * form.size**2))
    if n > fits:
        raise StudentError(
            "There are {n:,} pictures; the limit is {fits:,} at {size} x {size} pixels.",
            n=n,
            fits=fits,
            size=form.size,
        )


def check_classes(n: int) -> None:
    """Raise StudentError for more classes than a set may have."""
    if n > MAX_CLASSES:
        raise StudentError(
            "There are {n:,} classes; the limit is {most}. Each folder is one class.",
            n=n,
            most=MAX_CLASSES,
        )


def as_square(image: Image.Image, form: PictureForm, done: Counter[str]) -> Grid:
    """Return a picture in the form, uint8 (C, size, size); ``done`` counts what was done to it."""
    from PIL import Image, ImageOps

    done["bits"] += image.info.get("n_bits", 8) > 8
    plain = flattened(image)
    if form.is_grey and plain.mode != "L":
        done["grey"] += 1
    plain = plain.convert("L" if form.is_grey else "RGB")
    size = (form.size, form.size)
    if plain.width != plain.height:
        done[form.fit] += 1
    if plain.size != size:
        done["resized"] += 1
        if form.fit == "whole" and plain.width != plain.height:
            small = ImageOps.contain(plain, size, Image.Resampling.BOX)
            square = Image.new(plain.mode, size, _border(plain))
            square.paste(small, ((size[0] - small.width) // 2, (size[1] - small.height) // 2))
            plain = square
        else:
            plain = ImageOps.fit(plain, size, Image.Resampling.BOX)
    values = np.asarray(plain)
    return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)


def _border(image: Image.Image) -> int | tuple[int, ...]:
    """Return the usual colour along the border."""
    values = np.asarray(image)
    border = np.concatenate([values[0], values[-1], values[:, 0], values[:, -1]])
    middle = np.median(border, axis=0).astype(int)
    return int(middle) if middle.ndim == 0 else tuple(int(one) for one in middle)


def notes_on(done: Counter[str], n: int, form: PictureForm) -> list[str]:
    """Return notes on how the pictures were made alike."""
    notes = {
        "resized": N_(
            "{done:,} of {n:,} pictures were resized to {size} x {size} pixels.",
            done=done["resized"],
            n=n,
            size=form.size,
        ),
        "bits": N_("Stretched to 8 bits: {n:,}.", n=done["bits"]),
        "middle": N_("Cropped to squares: {n:,}.", n=done["middle"]),
        "whole": N_("Padded to squares: {n:,}.", n=done["whole"]),
        "grey": N_("Converted to greyscale: {n:,}.", n=done["grey"]),
    }
    return [sentence for what, sentence in notes.items() if done[what]]
