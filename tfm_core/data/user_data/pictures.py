"""Custom pictures: made one size and colour, split, written as a set, read, and learned.

Every container yields items; ``make_alike`` reads them all, and reports changes and what is
skipped; ``arranged`` splits them. Duplicates are pictures of the same pixels, once they are alike.
"""

from __future__ import annotations

import io
import re
import unicodedata
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config.image_tasks import (
    BETWEEN,
    MARKUP,
    MAX_CLASSES,
    MAX_NAME,
    Ground,
    OwnPicturesTaskConfig,
    is_class_name,
)
from tfm_core.choices.variants.record import Registry, Variant
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.sets import SPLITS, Prepared, SetDamaged, UserSet, damaged
from tfm_core.data.user_data.uploads import (
    LIMITS,
    Accounting,
    BadData,
    Item,
    Remark,
    Report,
    check,
    kept,
    n_lines,
    printable,
    read_each,
    set_name,
    skipped,
)
from tfm_core.data.user_picture import flattened, opened
from tfm_core.reading import check_header
from tfm_core.sentences import N_, Paragraph, StudentError

if TYPE_CHECKING:
    from PIL import Image

    from tfm_core.data.download import Progress
    from tfm_core.data.image_data import ImageData

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
FILE = "pictures.safetensors"
TEST = SPLITS.index("test")
VALIDATION = SPLITS.index("validation")
MIN_PICTURES = 24
"""Pictures that a set must have: eight for validation, some for the test, and some to learn."""
_UNEVEN = 5  # ratio of class sizes from which a warning is given
_SIDE = 7  # patches in a row that are few enough to be quick, and enough to say where something is


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(Variant):
    """How a non-square picture becomes a square."""


FITS = Registry(
    "way to make a square",
    Fit(name="middle", source="ImageNet's usual centre crop"),
    Fit(name="whole", source="letterboxing, as in YOLO"),
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


def make_alike(report: Report, name: str, items: Sequence[Item], form: PictureForm) -> None:
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
        notes.append(N_("Pictures transposed: {n:,}.", n=len(good)))
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
        "bits": N_("Pictures stretched to 8 bits: {n:,}.", n=done["bits"]),
        "middle": N_("Pictures cropped to squares: {n:,}.", n=done["middle"]),
        "whole": N_("Pictures padded to squares: {n:,}.", n=done["whole"]),
        "grey": N_("Pictures converted to greyscale: {n:,}.", n=done["grey"]),
    }
    return [sentence for what, sentence in notes.items() if done[what]]


@dataclass(frozen=True, slots=True)
class Split:
    """How pictures are split.

    by: ``file`` where folders or files name the splits, ``seed`` where the test is drawn. share: of
    the test, where it is drawn; from each class alike.
    """

    by: str = "seed"
    seed: int = 0
    share: float = 0.15


def arranged(
    read: Report, split: Split, *, names: Sequence[str] = (), drops_duplicates: bool = False
) -> Report:
    """Return pictures split, with what is wrong with them as a set.

    names: of the classes, in their order, where they are renamed: classes of one name are merged,
    and the pictures of a class with an empty name are left out.
    """
    report = replace(read)
    if names:
        _rename(report, names)
    if not report.items:
        report.refusal = N_("Name at least two classes.")
        return report
    if drops_duplicates:
        first: dict[bytes, Item] = {}
        for item in report.items:
            first.setdefault(item.content.tobytes(), item)
        n = len(report.items) - len(first)
        dropped = Item(why=N_("Duplicate pictures dropped: {n:,}.", n=n), n_lines=n)
        report.items, report.skipped = tuple(first.values()), (dropped, *report.skipped)
    _split(report, split)
    report.accounting = replace(
        report.accounting, kept=len(report.items), left_out=n_lines(report.skipped)
    )
    report.refusal = _problem(report)
    if report.refusal is None:
        report.findings += tuple(_findings(report))
    return report


def has_duplicates(report: Report) -> bool:
    """Return whether several pictures have the same pixels."""
    return len({item.content.tobytes() for item in report.items}) < len(report.items)


def _rename(report: Report, names: Sequence[str]) -> None:
    """Rename, merge and leave out classes."""
    called = dict(zip(report.balance, names, strict=True))
    labels = {label: class_label(name) for label, name in called.items()}
    dropped = [
        Item(name=label, n_lines=sum(report.balance[label]), why=N_("This class has no name."))
        for label, name in labels.items()
        if not name
    ]
    report.skipped = (*dropped, *report.skipped)
    report.items = tuple(
        replace(item, label=labels[item.label]) for item in report.items if labels[item.label]
    )
    changed = {called[label].strip(): name for label, name in labels.items() if name}
    report.findings += tuple(
        Remark("note", N_("“{typed}” was renamed “{name}”.", typed=typed[:80], name=name))
        for typed, name in changed.items()
        if typed != name
    )


def _split(report: Report, split: Split) -> None:
    """Draw the test from each class alike; the same seed, the same test.

    Where files name splits but no test, it is drawn from what they say is for training.
    """
    items = report.items
    report.split = asdict(split)
    named = [item.split or 0 for item in items] if split.by == "file" else [0] * len(items)
    if TEST not in named:
        members: dict[str, list[int]] = {label: [] for label in report.balance}
        for at, item in enumerate(items):
            if not named[at]:
                members[item.label].append(at)
        rng = np.random.default_rng(split.seed)
        for places in members.values():
            n = round(split.share * len(places)) if len(places) > 1 else 0
            for drawn in rng.permutation(places)[: min(max(n, 1), len(places) - 1)].tolist():
                named[drawn] = TEST
    report.items = tuple(
        item if item.split == part else replace(item, split=part)
        for item, part in zip(items, named, strict=True)
    )
    n_each = np.bincount(named, minlength=len(SPLITS)).tolist()
    report.counts = dict(zip(SPLITS, n_each, strict=True))


def _problem(report: Report) -> str | None:
    """Return why nothing could be learned from a set, or None."""
    n, names, first = len(report.items), list(report.balance), report.items[0].content
    if len(names) < 2:
        return N_(
            "All {n:,} pictures are in one class, “{name}”. Use at least two folders.",
            n=n,
            name=names[0],
        )
    if n > 1 and all(np.array_equal(item.content, first) for item in report.items):
        return N_("All {n:,} pictures are the same. Are they packed correctly?", n=n)
    if n < MIN_PICTURES:
        return N_("Pictures: {n}; at least {least} are needed.", n=n, least=MIN_PICTURES)
    n_training = n - report.counts["test"]
    n_classes = len(names) - len(_untrained(report))
    if n_training < MIN_PICTURES // 2 or n_classes < 2:
        return N_(
            "The test leaves {n} training pictures of {n_classes} classes. Make it smaller.",
            n=n_training,
            n_classes=n_classes,
        )
    return None


def _untrained(report: Report) -> list[str]:
    """Return the classes of which only the test has pictures."""
    return [name for name, counts in report.balance.items() if sum(counts) == counts[TEST]]


def _findings(report: Report) -> Iterator[Remark]:
    """Yield what is worth knowing of a set: uneven and untested classes, blanks and duplicates."""
    if untrained := _untrained(report):
        words = N_("Only the test has {names}, so the model cannot learn them.")
        yield Remark("warning", N_(words, names=_some(untrained)))
    per_class = {name: sum(counts) for name, counts in report.balance.items()}
    size = per_class.__getitem__
    n, most, least = len(report.items), max(per_class, key=size), min(per_class, key=size)
    if per_class[most] >= _UNEVEN * per_class[least]:
        uneven = Paragraph(
            "own-data/uneven",
            n_most=per_class[most],
            most=most,
            n_least=per_class[least],
            least=least,
            share=100 * per_class[most] / n,
        )
        yield Remark("warning", uneven)
    untested = [name for name, counts in report.balance.items() if not counts[TEST]]
    if untested:
        yield Remark("warning", N_("The test has no pictures of {names}.", names=_some(untested)))
    images = images_of(report).reshape(n, -1)
    if n_blank := int((images == images[:, :1]).all(1).sum()):
        yield Remark("warning", N_("Blank pictures: {n:,} of {all:,}.", n=n_blank, all=n))
    yield from _duplicates(report)


def _duplicates(report: Report) -> Iterator[Remark]:
    """Yield how many pictures have the pixels of another, and what that spoils."""
    same: dict[bytes, list[Item]] = defaultdict(list)
    for item in report.items:
        same[item.content.tobytes()].append(item)
    groups = [group for group in same.values() if len(group) > 1]
    splits = [sorted(item.split or 0 for item in group) for group in groups]
    if n_across := sum(part > parts[0] for parts in splits for part in parts):
        words = N_("Test or validation pictures also in training: {n:,}. Drop the duplicates.")
        yield Remark("warning", N_(words, n=n_across))
    contradicting = [group for group in groups if len({item.label for item in group}) > 1]
    if contradicting:
        words = N_("Pictures in several classes: {n:,}; no model can tell which is right.")
        yield Remark("warning", N_(words, n=sum(map(len, contradicting))))
    if groups:
        words = N_("Duplicate pictures: {n:,}. For example, {second} equals {first}.")
        first, second = (item.place for item in groups[0][:2])
        n_again = sum(map(len, groups)) - len(groups)
        yield Remark("note", N_(words, n=n_again, first=first, second=second))


def _some(names: list[str], limit: int = 5) -> str:
    """Return the first few names in quotation marks."""
    quoted = ", ".join(f"“{name}”" for name in names[:limit])
    more = len(names) - limit
    return N_("{names} and {more} more", names=quoted, more=more) if more > 0 else quoted


def images_of(report: Report) -> Grid:
    """Return the pictures of a report, (N, C, size, size)."""
    # what is stacked keeps the order of turned pictures in memory, and files are written in it
    return np.ascontiguousarray(np.stack([item.content for item in report.items]))


def ground_of(images: Grid) -> Ground:
    """Return whether the borders of nine in ten pictures (N, C, size, size) are dark or bright.

    Custom pictures are inverted to suit a model that learned drawings; photographs are not.
    """
    edges = images[..., 0, :], images[..., -1, :], images[..., 0], images[..., -1]
    usual = np.median(np.concatenate(edges, -1).reshape(len(images), -1), axis=1)
    if (usual < 64).mean() >= 0.9:
        return "dark"
    return "bright" if (usual > 191).mean() >= 0.9 else "any"


def prepare(report: Report, *, name: str = "") -> Prepared:
    """Make a set of a report. Raises ValueError where it is refused."""
    from safetensors.numpy import save

    if report.refusal is not None:
        raise StudentError(report.refusal)
    classes, images = list(report.balance), images_of(report)
    tensors: dict[str, Any] = {
        "images": images,
        "labels": np.array([classes.index(item.label) for item in report.items], np.int16),
        "parts": np.array([item.split for item in report.items], np.int8),
    }
    _n, channels, size, _width = images.shape
    ground = ground_of(images)
    details = {"size": size, "channels": channels, "ground": ground, "classes": classes}
    name, files = set_name(name or report.name, "pictures"), {FILE: save(tensors)}
    return Prepared("pictures", name, report.counts, report.split, details, files)


def tensors_of(user_set: UserSet) -> tuple[Grid, npt.NDArray[np.int64], npt.NDArray[np.int8]]:
    """Return the pictures of a set (N, C, size, size), and the class and split of each, (N,).

    Raises SetDamaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = user_set.content(FILE)
        check_header(user_set.folder / FILE, io.BytesIO(content))
        tensors: dict[str, Any] = load(content)
        images, parts = tensors["images"], tensors["parts"]
        labels = tensors["labels"].astype(np.int64)
        classes = tuple(user_set.details["classes"])
        shape = (user_set.details["channels"], user_set.details["size"], user_set.details["size"])
        fits = (
            images.shape[1:] == shape
            and images.dtype == np.uint8
            and images.shape[:1] == labels.shape == parts.shape
            and labels.min() >= 0
            and labels.max() < len(classes)
            and np.isin(parts, range(len(SPLITS))).all()
        )
    except SetDamaged:
        raise
    except (SafetensorError, KeyError, ValueError):
        fits = False
    if not fits:
        raise damaged(user_set.name, N_("{file} is damaged", file=FILE))
    return images, labels, parts


def report_of(user_set: UserSet) -> Report:
    """Return what a set holds. Raises SetDamaged."""
    tensors = tensors_of(user_set)
    if not is_sound(user_set.details):
        raise damaged(user_set.name)
    classes, is_named = user_set.details["classes"], user_set.split.get("by") == "file"
    items = []
    for at, (image, label, part) in enumerate(zip(*tensors, strict=True), 1):
        name = f"{classes[label]}/{at:05}.png"
        name = f"{SPLITS[part]}/{name}" if is_named else name
        items.append(Item(image, classes[label], int(part), name=name))
    return Report("pictures", user_set.name, user_set.split, tuple(items), counts=user_set.counts)


def as_zip(report: Report) -> bytes:
    """Return pictures as a zip of folders by class, as it can be uploaded again."""
    from PIL import Image

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for item in report.items:
            png = io.BytesIO()
            Image.fromarray(np.moveaxis(item.content, 0, -1).squeeze()).save(png, "PNG")
            entry = zipfile.ZipInfo(item.name, (2026, 1, 1, 0, 0, 0))
            archive.writestr(entry, png.getvalue())
    return file.getvalue()


def is_sound(details: object) -> bool:
    """Return whether a set's details of its pictures are valid."""
    if not isinstance(details, dict):
        return False
    classes = details.get("classes")
    return (
        details.get("size") in SIZES
        and details.get("ground") in get_args(Ground)
        and details.get("channels") in (1, 3)
        and isinstance(classes, list)
        and 2 <= len(classes) <= MAX_CLASSES
        and all(isinstance(name, str) and is_class_name(name) for name in classes)
    )


# Its task


def task_of(user_set: UserSet) -> OwnPicturesTaskConfig:
    """Return the settings that learn a set. Raises ValueError."""
    details, counts = user_set.details, user_set.counts
    if not is_sound(details) or not all(part in counts for part in SPLITS):
        raise sets.damaged(user_set.name)
    n_learned, n_held_out = counts["train"] + counts["validation"], counts["validation"]
    return OwnPicturesTaskConfig.parse(
        {
            "data": user_set.id,
            "called": str(user_set.name),
            "side": details["size"],
            "is_coloured": details["channels"] == 3,
            "ground": details["ground"],
            "classes": BETWEEN.join(details["classes"]),
            "n_learned": n_learned,
            "n_tested": counts["test"],
            "n_validation": n_held_out or min(500, max(8, round(0.15 * n_learned))),
        }
    )


def patch(side: int) -> int:
    """Return the size of patch that leaves about seven of them in a row."""
    fitting = [size for size in range(2, side) if side % size == 0]
    return min(fitting, key=lambda size: (abs(side // size - _SIDE), -size))


def load_user_pictures(
    config: OwnPicturesTaskConfig, *, seed: int, progress: Progress | None = None
) -> ImageData:
    """Return the pictures of a set on the CPU; the same seed makes the same splits.

    The test is the set's own, the same for every seed; so is the validation where the set names
    one, else the seed draws it. Raises SetMissing, SetDamaged and, for another set, StudentError.
    """
    import torch

    from tfm_core.data.image_data import ImageSplit, divided

    user_set = sets.find(config.data)
    expected = task_of(user_set)
    for name in ("side", "is_coloured", "ground", "classes", "n_learned", "n_tested"):
        if getattr(expected, name) != getattr(config, name):
            raise StudentError(
                "The set {data} has {name} {there}, not {here}. Choose it again.",
                data=config.data,
                name=name,
                there=str(getattr(expected, name))[:60],
                here=str(getattr(config, name))[:60],
            )
    images, labels, parts = (torch.from_numpy(values.copy()) for values in tensors_of(user_set))
    train, validation, test = (
        ImageSplit(images[parts == number], labels[parts == number])
        for number in range(len(SPLITS))
    )
    held_out = validation if (parts == VALIDATION).any() else None
    return divided(config, train, test, seed=seed, validation=held_out)
