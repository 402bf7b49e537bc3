"""Custom pictures, made one size and colour: squares, grey or coloured.

Every container yields items; ``made_alike`` reads them all, and reports changes and what is
skipped.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config.own_pictures import MARKUP, MAX_NAME
from tfm_core.choices.variants.record import Registry, Variant
from tfm_core.data.own.containers import (
    LIMITS,
    BadData,
    Item,
    check,
    kept,
    n_lines,
    printable,
    read_each,
    skipped,
)
from tfm_core.data.own.report import Accounting, Remark, Report
from tfm_core.data.own_picture import flattened, opened
from tfm_core.sentences import N_, Paragraph, StudentError

if TYPE_CHECKING:
    from PIL import Image

SIZES = (16, 20, 24, 28, 32, 36, 40, 48, 56, 64)
"""Allowed sides in pixels; 4 divides each, as a patch size."""
MAX_PIXELS = 64_000_000
"""Values of all pictures of a set together, as they are stored."""
MAX_DECODED = 2_000_000_000
"""Pixels decoded of one upload, before resizing: some twenty seconds."""

_SPLIT_WORDS = {
    "train": "train training trainset 학습 훈련 训练 訓練 学習",
    "validation": "val valid validation valset dev 검증 验证 驗證 検証",
    "test": "test testing testset t10k 테스트 测试 測試 テスト",
}

Grid = npt.NDArray[np.uint8]
_DROPPED = MARKUP.replace("_", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(Variant):
    """How a non-square picture becomes a square."""


FITS = Registry(
    "way to make a square",
    Fit(
        name="middle",
        source="ImageNet's usual centre crop",
    ),
    Fit(
        name="whole",
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
    def n_values(self) -> int:
        """Values of a picture: a grey one has one channel, a coloured one three."""
        return (1 if self.is_grey else 3) * self.size**2


def made_alike(report: Report, name: str, items: Sequence[Item], form: PictureForm) -> None:
    """Fill a report with the pictures of items, read one by one within the limits on all of them.

    name: of the upload. The content of an item is uint8 (H, W) or (H, W, 3), or a function that
    reads its file; it becomes uint8 (C, size, size). Raises StudentError.
    """
    done: Counter[str] = Counter()
    spent: Counter[str] = Counter()

    def read(item: Item) -> Item:
        content = item.content() if callable(item.content) else item.content
        # an array of the right size is taken as it is: 70,000 detours over Pillow take seconds
        if form.is_grey and np.shape(content) == (form.size, form.size):
            return replace(item, content=np.asarray(content)[None])
        spent["bytes"] += len(content)
        check("unpacked", spent["bytes"], name=name)
        image, (width, height) = opened(content)
        spent["pixels"] += width * height
        if spent["pixels"] > MAX_DECODED:
            most = MAX_DECODED // 10**6
            raise BadData(Paragraph("own-data/too-many-pixels", name=name, most=most))
        return replace(item, content=_as_square(image, form, done))

    candidates = kept(items)
    fits = min(LIMITS["pictures"].most, MAX_PIXELS // form.n_values)
    check("pictures", len(candidates), most=fits, fits=fits, size=form.size)
    check("classes", len({item.label for item in candidates}))
    items = read_each(items, read)
    good, report.skipped = kept(items), tuple(skipped(items))
    if not good:
        first = report.skipped[0].reason if report.skipped else N_("The zip is empty.")
        raise StudentError(Paragraph("own-data/no-picture", name=name, first=first))
    notes = _notes_on(done, len(good), form)
    called = class_labels(item.label for item in good)
    if report.read_as.is_turned:
        notes.append(N_("Transposed: {n:,} pictures.", n=len(good)))
        good = [replace(item, content=item.content.swapaxes(1, 2)) for item in good]
    report.items = tuple(
        item if item.label == called[item.label] else replace(item, label=called[item.label])
        for item in good
    )
    if good[0].split is not None:
        report.split = {"by": "file"}
    n_bad, n_system = n_lines(report.skipped), report.accounting.system
    total = len(good) + n_bad + n_system
    report.accounting = Accounting(total, len(good), n_bad, system=n_system, counted="entries")
    report.findings += (
        *report.accounting.warnings(report.skipped),
        *(Remark("note", words) for words in notes),
    )


def part_of(name: str) -> str | None:
    """Return the split in a folder's or file's name: ``seg_train``, ``t10k-images``.

    None where no word of it says one, or its words say different ones.
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold()
    words = re.findall(r"[a-z]+[0-9]+[a-z]+|[a-z]+", spaced)
    parts = {
        part
        for part, signs in _SPLIT_WORDS.items()
        for sign in signs.split()
        if (sign in words if sign.isascii() else sign in name)  # Korean has no spaces to go by
    }
    return parts.pop() if len(parts) == 1 else None


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


def _as_square(image: Image.Image, form: PictureForm, done: Counter[str]) -> Grid:
    """Return a picture in the form, uint8 (C, size, size); ``done`` counts what was done to it."""
    from PIL import Image, ImageOps

    done["bits"] += image.info.get("n_bits", 8) > 8
    plain = flattened(image)
    done["grey"] += form.is_grey and plain.mode != "L"
    plain = plain.convert("L" if form.is_grey else "RGB")
    size = (form.size, form.size)
    done[form.fit] += plain.width != plain.height
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


def _notes_on(done: Counter[str], n: int, form: PictureForm) -> list[str]:
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
