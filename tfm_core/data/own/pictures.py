"""Custom pictures, made one size and colour: squares, grey or coloured.

Every container yields ``PictureItem``s; ``made_alike`` reads them all, and reports changes and what
is skipped.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tfm_core.config.own_pictures import MARKUP, MAX_CLASSES, MAX_NAME
from tfm_core.data.own.containers import BadData, printable, read_each, shown
from tfm_core.data.own_picture import flattened, opened
from tfm_core.sentences import N_, Paragraph, StudentError
from tfm_core.variants.record import Registry, Variant

if TYPE_CHECKING:
    from PIL import Image

SIZES = (16, 20, 24, 28, 32, 36, 40, 48, 56, 64)
"""Allowed sides in pixels; 4 divides each, as a patch size."""
MAX_PICTURES = 70_000
MAX_FILES = 2 * MAX_PICTURES
"""In a zip, and lines of a table, whether they hold pictures or not."""
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
_PART_WORDS: dict[Part, str] = {
    "train": "train training trainset 학습 훈련 训练 訓練 学習",
    "validation": "val valid validation valset dev 검증 验证 驗證 検証",
    "test": "test testing testset t10k 테스트 测试 測試 テスト",
}

Folders = Literal["splits", "classes"]
Grid = npt.NDArray[np.uint8]
_DROPPED = MARKUP.replace("_", "")


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

    Given to a reader, None leaves the choice to it; in ``Pictures.understood``, None says that
    there is nothing to choose.
    """

    folders: Folders | None = None  # whether the outer folders are splits or classes
    encoding: str | None = None  # of file names, a key of ``ENCODINGS``
    is_turned: bool | None = None  # whether rows and columns are swapped, as in EMNIST


GUESSED = ReadingChoices()
"""Every choice is left to the reader."""


@dataclass(frozen=True, slots=True, eq=False)
class PictureItem:
    """A picture as its container yields it.

    content: uint8 (H, W) or (H, W, 3), or a function that reads its file. part: the split that its
    folder or file names, as an index of ``PARTS``.
    """

    content: Grid | Callable[[], bytes]
    label: str
    part: int | None
    place: str


@dataclass(frozen=True, slots=True, eq=False)
class Pictures:
    """Pictures as read. Every file or line of the upload is one, or counted as skipped."""

    images: Grid  # (N, C, size, size)
    labels: npt.NDArray[np.int64]  # (N,), indices of ``class_names``
    class_names: tuple[str, ...]
    names: tuple[str, ...]  # where each came from
    parts: npt.NDArray[np.int8] | None = (
        None  # (N,), indices of ``PARTS``; None where none is named
    )
    left_out: tuple[str, ...] = ()  # messages on the first skipped files and lines
    n_left_out: int = 0
    notes: tuple[str, ...] = ()  # on changes of the pictures
    warnings: tuple[str, ...] = ()  # on the upload as a whole
    n_system: int = 0  # files that an operating system adds
    understood: ReadingChoices = GUESSED
    folder_names: tuple[str, ...] = ()  # that ``understood.folders`` is about

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


def made_alike(
    name: str,
    items: Sequence[PictureItem],
    form: PictureForm,
    left_out: LeftOut,
    *,
    understood: ReadingChoices,
    notes: Iterable[str] = (),
    **fields: Any,
) -> Pictures:
    """Return the pictures of items, read one by one within the limits on their total size.

    name: of the upload. fields: others of ``Pictures``. Raises StudentError.
    """
    done: Counter[str] = Counter()
    spent: Counter[str] = Counter()

    def read(item: PictureItem) -> Grid:
        content = item.content() if callable(item.content) else item.content
        # an array of the right size is taken as it is: 70,000 detours over Pillow take seconds
        if form.is_grey and np.shape(content) == (form.size, form.size):
            return np.asarray(content)[None]
        spent["bytes"] += len(content)
        check_size(name, spent["bytes"])
        image, (width, height) = opened(content)
        spent["pixels"] += width * height
        if spent["pixels"] > MAX_DECODED:
            most = MAX_DECODED // 10**6
            raise BadData(Paragraph("own-data/too-many-pixels", name=name, most=most))
        return as_square(image, form, done)

    check_n_pictures(len(items), form)
    check_classes(len({item.label for item in items}))
    each = list(read_each(items, read, lambda item, why: left_out.add(item.place, why)))
    if not each:
        first = left_out.sentences[:1] or [N_("The zip is empty.")]
        raise StudentError(Paragraph("own-data/no-picture", name=name, first=first[0]))
    images = np.stack([image for _item, image in each])
    changes = notes_on(done, len(each), form)
    if understood.is_turned:
        images = np.ascontiguousarray(images.swapaxes(2, 3))
        changes.append(N_("Transposed: {n:,} pictures.", n=len(images)))
    called = class_labels(item.label for item, _image in each)
    class_names = class_order(list(called.values()))
    numbers = {label: class_names.index(name) for label, name in called.items()}
    parts = [item.part for item, _image in each]
    return Pictures(
        images,
        np.array([numbers[item.label] for item, _image in each], np.int64),
        class_names,
        tuple(item.place for item, _image in each),
        None if parts[0] is None else np.array(parts, np.int8),
        tuple(left_out.sentences),
        left_out.n,
        (*notes, *changes),
        understood=understood,
        **fields,
    )


def check_size(name: str, n_bytes: int) -> None:
    """Raise BadData for an upload that unpacks to more than is read."""
    if n_bytes > MAX_UNPACKED:
        raise BadData(
            "{name} unpacks to more than {most} MB. Use fewer or smaller pictures.",
            name=name,
            most=MAX_UNPACKED // 10**6,
        )


def part_of(name: str) -> Part | None:
    """Return the split in a folder's or file's name: ``seg_train``, ``t10k-images``.

    None where no word of it says one, or its words say different ones.
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold()
    words = re.findall(r"[a-z]+[0-9]+[a-z]+|[a-z]+", spaced)
    parts = {
        part
        for part, signs in _PART_WORDS.items()
        for sign in signs.split()
        if (sign in words if sign.isascii() else sign in name)  # Korean has no spaces to go by
    }
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
    plain = unicodedata.normalize("NFC", printable(cleaned))
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
        if form.fit == "whole":
            values = np.asarray(plain)
            border = np.concatenate([values[0], values[-1], values[:, 0], values[:, -1]])
            colour = tuple(np.median(border, axis=0).astype(int).reshape(-1).tolist())
            half = (0.499, 0.499)  # the smaller half lies to the left and above
            plain = ImageOps.pad(plain, size, Image.Resampling.BOX, colour, half)
        else:
            plain = ImageOps.fit(plain, size, Image.Resampling.BOX)
    values = np.asarray(plain)
    return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)


def notes_on(done: Counter[str], n: int, form: PictureForm) -> list[str]:
    """Return notes on how the pictures were made alike."""
    resized = N_(
        "{done:,} of {n:,} pictures were resized to {size} x {size} pixels.",
        done=done["resized"],
        n=n,
        size=form.size,
    )
    notes = {
        "resized": resized,
        "bits": N_("Stretched to 8 bits: {n:,}.", n=done["bits"]),
        "middle": N_("Cropped to squares: {n:,}.", n=done["middle"]),
        "whole": N_("Padded to squares: {n:,}.", n=done["whole"]),
        "grey": N_("Converted to greyscale: {n:,}.", n=done["grey"]),
    }
    return [sentence for what, sentence in notes.items() if done[what]]
