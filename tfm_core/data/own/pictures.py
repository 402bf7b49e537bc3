"""Pictures of one's own: a zip of folders by class, or IDX files, read into one form.

Whatever their size and colour, all become squares of one size, grey or coloured; what was done to
them is said, and so is every file that could not be taken, by its name.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from tfm_core.config.own_pictures import MARKUP, MOST_CLASSES, MOST_NAME
from tfm_core.data.own_picture import flattened
from tfm_core.sentences import N_, StudentError
from tfm_core.variants.record import Registry, Variant

if TYPE_CHECKING:
    from PIL import Image

SIZES = (16, 20, 24, 28, 32, 36, 40, 48, 56, 64)
"""Pixels to a side that pictures are made; each has a patch size of 4."""
MOST_PICTURES = 70_000
MOST_PIXELS = 64_000_000
"""Values of all pictures of a set together, as they are kept."""
MOST_UNPACKED = 400_000_000
"""Bytes that an upload may have once it is unpacked."""
MOST_DECODED = 2_000_000_000
"""Pixels that are decoded of one upload, before they are made smaller: some twenty seconds."""
MOST_SAID = 8
"""Sentences on files that were left out; the rest is counted."""

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
_PART_NAMES: dict[str, Part] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "validation"),
    **dict.fromkeys(("test", "testing", "t10k"), "test"),
}

Grid = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(Variant):
    """How a picture that is no square becomes one."""


FITS = Registry(
    "way to make a square",
    Fit(
        name="middle",
        label=N_("Cut the middle"),
        help=N_("The square in the middle is kept, what lies beside it is cut off."),
        source="ImageNet's usual centre crop",
    ),
    Fit(
        name="whole",
        label=N_("Keep all"),
        help=N_("All of it is kept; the sides are filled with the colour of its border."),
        source="letterboxing, as in YOLO",
    ),
)


@dataclass(frozen=True, slots=True)
class Form:
    """What pictures are made: squares of ``size`` pixels, grey or coloured."""

    size: int = 28
    is_grey: bool = True
    fit: str = "middle"

    def __post_init__(self) -> None:
        """Refuse a size that no set has."""
        if self.size not in SIZES:
            raise StudentError(
                "Pictures cannot be made {size} pixels wide; choose one of {sizes}.",
                size=self.size,
                sizes=", ".join(map(str, SIZES)),
            )

    @property
    def channels(self) -> int:
        """1 for grey pictures, 3 for coloured ones."""
        return 1 if self.is_grey else 3


@dataclass(frozen=True, slots=True, eq=False)
class Pictures:
    """Pictures that were read: uint8 (N, C, size, size), with the number of each one's class (N,).

    names: where each came from. parts: of each the split that its folder or file names, as its
    place in ``PARTS``; None where nothing names one. left_out: a sentence for each file that is no
    picture of the set, and n_left_out how many there are. notes: what was done, and what is
    remarkable about the files.
    """

    images: Grid
    labels: npt.NDArray[np.int64]
    class_names: tuple[str, ...]
    names: tuple[str, ...]
    parts: npt.NDArray[np.int8] | None = None
    left_out: tuple[str, ...] = ()
    n_left_out: int = 0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.labels)


@dataclass(slots=True)
class LeftOut:
    """Files that are no pictures of the set: the first few in words, the rest counted."""

    sentences: list[str] = field(default_factory=list)
    n: int = 0

    def add(self, name: str, why: str) -> None:
        """Note a file and why it was left out."""
        self.n += 1
        if len(self.sentences) < MOST_SAID:
            self.sentences.append(N_("{name}: {why}", name=shown(name), why=why))


def read_pictures(files: Sequence[tuple[str, bytes]], form: Form) -> Pictures:
    """Read what was uploaded, each file with its name: one zip, or IDX files (packed ones too).

    Raises ValueError, in a sentence that names the file.
    """
    from tfm_core.data.own.pictures_idx import is_idx, read_idx
    from tfm_core.data.own.pictures_zip import is_zip, read_zip

    if not files:
        raise StudentError("There is no file yet; choose a zip of folders, or IDX files.")
    zips = [(name, content) for name, content in files if is_zip(content)]
    if len(zips) == 1 and len(files) == 1:
        return read_zip(*zips[0], form)
    if zips:
        raise StudentError(
            "{name} is a zip, and one zip is a whole set; take it in without the other files.",
            name=shown(zips[0][0]),
        )
    for name, content in files:
        if not is_idx(content):
            raise StudentError(
                "{name} is neither a zip of folders with pictures nor an IDX file. Pack the "
                "folders of your classes into one zip.",
                name=shown(name),
            )
    return read_idx(files, form)


def shown(name: str) -> str:
    """Return a file's name as it can be shown; whoever packed it may have named it anything."""
    plain = "".join(one if one.isprintable() else "?" for one in name)
    return plain if len(plain) <= 80 else f"…{plain[-79:]}"


def part_of(name: str) -> Part | None:
    """Return the split that a folder's or file's name says: ``train``, ``t10k-images``, or None."""
    first = re.split(r"[^a-z0-9]+", name.casefold())[0]
    return _PART_NAMES.get(first)


def class_order(names: Sequence[str]) -> tuple[str, ...]:
    """Return the different names in the order a person expects: 2 before 10."""

    def key(name: str) -> list[tuple[int, int, str]]:
        pieces = re.findall(r"\d+|\D+", name)
        return [(0, int(p), p) if p.isdecimal() else (1, 0, p.casefold()) for p in pieces]

    return tuple(sorted(set(names), key=lambda name: (key(name), name)))


def class_labels(folders: Iterable[str]) -> dict[str, str]:
    """Return how the class of each folder is called: plain letters, each name once."""
    found: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        kept = "".join(
            " " if one == "_" else one for one in folder if one not in MARKUP.replace("_", "")
        )
        plain = "".join(one if one.isprintable() else "?" for one in kept)
        name = " ".join(unicodedata.normalize("NFC", plain).split())[:MOST_NAME] or "?"
        number = 2
        while name in found.values():
            name = f"{name[: MOST_NAME - 4]} {number}"
            number += 1
        found[folder] = name
    return found


def check_room(n: int, form: Form) -> None:
    """Raise StudentError for more pictures than a set may have."""
    fits = min(MOST_PICTURES, MOST_PIXELS // (form.channels * form.size**2))
    if n > fits:
        raise StudentError(
            "There are {n:,} pictures, but at most {fits:,} of {size} x {size} pixels are taken; "
            "leave some out, or make them smaller.",
            n=n,
            fits=fits,
            size=form.size,
        )


def check_classes(n: int) -> None:
    """Raise StudentError for more classes than a set may have."""
    if n > MOST_CLASSES:
        raise StudentError(
            "There are {n:,} classes, but at most {most} are taken: each folder is a class. Are "
            "the pictures perhaps in folders of their own?",
            n=n,
            most=MOST_CLASSES,
        )


def squared(image: Image.Image, form: Form, done: Counter[str]) -> Grid:
    """Return a picture in the form, uint8 (C, size, size); ``done`` counts what was done to it."""
    from PIL import Image, ImageOps

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


def notes_on(done: Counter[str], n: int, form: Form) -> list[str]:
    """Say what was done to the pictures to make them alike."""
    size = form.size
    said = {
        "resized": N_(
            "{done:,} of {n:,} pictures were resized to {size} x {size} pixels.",
            done=done["resized"],
            n=n,
            size=size,
        ),
        "middle": N_(
            "{done:,} were not square: cut to the square in their middle.", done=done["middle"]
        ),
        "whole": N_(
            "{done:,} were not square: centred whole on the colour of their border.",
            done=done["whole"],
        ),
        "grey": N_("{done:,} coloured ones were made grey.", done=done["grey"]),
    }
    return [sentence for what, sentence in said.items() if done[what]]
