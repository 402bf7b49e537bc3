"""A set of pictures: how it is split, what is wrong with it, how it is written and read.

Duplicates are pictures of the same pixels, after they were made one size.
"""

from __future__ import annotations

import io
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config.image_tasks import Ground
from tfm_core.choices.config.own_pictures import MAX_CLASSES, is_class_name
from tfm_core.data.own.containers import Item, n_lines
from tfm_core.data.own.pictures import SIZES, Grid, class_label
from tfm_core.data.own.report import Remark, Report, set_name
from tfm_core.data.own.sets import SPLITS, OwnSet, Prepared, SetDamaged, damaged
from tfm_core.reading import check_header
from tfm_core.sentences import N_, Paragraph, StudentError

KIND = "pictures"
FILE = "pictures.safetensors"
TEST = SPLITS.index("test")
VALIDATION = SPLITS.index("validation")
MIN_PICTURES = 24
"""Pictures that a set must have: eight for validation, some for the test, and some to learn."""
_UNEVEN = 5  # ratio of class sizes from which a warning is given


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
        dropped = Item(why=N_("Duplicates dropped: {n:,}.", n=n), n_lines=n)
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
        words = N_("Duplicate pictures: {n:,}; {second} equals {first}.")
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
    border = np.concatenate(
        [images[..., 0, :], images[..., -1, :], images[..., 0], images[..., -1]], -1
    )
    usual = np.median(border.reshape(len(images), -1), axis=1)
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
    return Prepared(
        kind=KIND,
        name=set_name(name or report.name, KIND),
        counts=report.counts,
        split=report.split,
        details={
            "size": size,
            "channels": channels,
            "ground": ground_of(images),
            "classes": classes,
        },
        files={FILE: save(tensors)},
    )


def tensors_of(own: OwnSet) -> tuple[Grid, npt.NDArray[np.int64], npt.NDArray[np.int8]]:
    """Return the pictures of a set (N, C, size, size), and the class and split of each, (N,).

    Raises SetDamaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = own.content(FILE)
        check_header(own.folder / FILE, io.BytesIO(content))
        tensors: dict[str, Any] = load(content)
        images, parts = tensors["images"], tensors["parts"]
        labels = tensors["labels"].astype(np.int64)
        classes = tuple(own.details["classes"])
        shape = (own.details["channels"], own.details["size"], own.details["size"])
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
        raise damaged(own.name, N_("{file} is damaged", file=FILE))
    return images, labels, parts


def report_of(own: OwnSet) -> Report:
    """Return what a set holds. Raises SetDamaged."""
    tensors = tensors_of(own)
    if not is_sound(own.details):
        raise damaged(own.name)
    classes, is_named = own.details["classes"], own.split.get("by") == "file"
    items = []
    for at, (image, label, part) in enumerate(zip(*tensors, strict=True), 1):
        name = f"{classes[label]}/{at:05}.png"
        name = f"{SPLITS[part]}/{name}" if is_named else name
        items.append(Item(image, classes[label], int(part), name=name))
    return Report(KIND, own.name, own.split, tuple(items), counts=own.counts)


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
        and all(isinstance(one, str) and is_class_name(one) for one in classes)
    )
