"""A set of pictures: how it is split, what is wrong with it, how it is written and read.

Duplicates are pictures of the same pixels, after they were made one size.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tfm_core.config.image_tasks import Ground
from tfm_core.config.own_pictures import MAX_CLASSES, is_class_name
from tfm_core.data.own.pictures import (
    PARTS,
    SIZES,
    Grid,
    Pictures,
    class_label,
    class_order,
)
from tfm_core.data.own.sets import OwnSet, Prepared, damaged
from tfm_core.sentences import N_, Paragraph, StudentError, counted

MIN_PICTURES = 24
"""Pictures that a set must have: eight for validation, some for the test, and some to learn."""
_UNEVEN = 5  # times as many pictures in one class as in another, from which on it is said

Level = Literal["problem", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence on a set. ``problem``: nothing could be learned from it, so it isn't kept."""

    level: Level
    sentence: str


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Pictures that are there more than once.

    n_again: pictures whose pixels another one before them has. n_across: those of the test or
    validation that stand in another split too. n_contradicting: those whose twin has another class.
    example: the names of two of them.
    """

    n_again: int = 0
    n_across: int = 0
    n_contradicting: int = 0
    example: tuple[str, str] | None = None


def findings(pictures: Pictures, parts: npt.NDArray[np.int8]) -> list[Finding]:
    """Return what is to be said of pictures and of their splits, (N,) places in ``PARTS``."""
    said = [*_problems(pictures, parts), *(Finding("warning", one) for one in pictures.warnings)]
    if any(one.level == "problem" for one in said):
        return said
    return [*said, *_on_classes(pictures, parts), *_on_twins(duplicates(pictures, parts))]


def counts(pictures: Pictures, parts: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Return how many pictures each class has in each split, (classes, splits)."""
    table = np.zeros((len(pictures.class_names), len(PARTS)), np.int64)
    np.add.at(table, (pictures.labels, parts), 1)
    return table


def duplicates(pictures: Pictures, parts: npt.NDArray[np.int8]) -> Duplicates:
    """Return how many pictures are there more than once."""
    same: dict[bytes, list[int]] = defaultdict(list)
    for at, image in enumerate(pictures.images):
        same[image.tobytes()].append(at)
    again = across = contradicting = 0
    example = None
    for places in same.values():
        if len(places) == 1:
            continue
        again += len(places) - 1
        example = example or (pictures.names[places[0]], pictures.names[places[1]])
        in_parts = parts[places]
        if len(set(in_parts.tolist())) > 1:
            across += int((in_parts != in_parts.min()).sum())
        contradicting += len(places) if len(set(pictures.labels[places].tolist())) > 1 else 0
    return Duplicates(again, across, contradicting, example)


def _problems(pictures: Pictures, parts: npt.NDArray[np.int8]) -> list[Finding]:
    n, names = len(pictures), pictures.class_names
    if len(names) < 2:
        words = N_(
            "All {n:,} pictures are in one class, “{name}”. Use at least two folders.",
            n=n,
            name=names[0],
        )
        return [Finding("problem", words)]
    if n > 1 and (pictures.images == pictures.images[:1]).all():
        words = N_(
            "All {n:,} pictures are the same. Are they packed correctly?",
            n=n,
        )
        return [Finding("problem", words)]
    if n < MIN_PICTURES:
        words = counted(
            "There is {n} picture; at least {least} are needed.",
            "There are {n} pictures; at least {least} are needed.",
            n,
            least=MIN_PICTURES,
        )
        return [Finding("problem", words)]
    in_training = pictures.labels[parts != PARTS.index("test")]
    missing = [name for at, name in enumerate(names) if at not in set(in_training.tolist())]
    if len(in_training) < MIN_PICTURES // 2 or len(names) - len(missing) < 2:
        words = N_(
            "The test leaves {n} training pictures of {n_classes} classes. Make it smaller.",
            n=len(in_training),
            n_classes=len(names) - len(missing),
        )
        return [Finding("problem", words)]
    if missing:
        words = N_(
            "Only the test has {names}, so the model cannot learn them.",
            names=_some(missing),
        )
        return [Finding("warning", words)]
    return []


def _on_classes(pictures: Pictures, parts: npt.NDArray[np.int8]) -> list[Finding]:
    said = []
    per_class = counts(pictures, parts).sum(1)
    most, least = int(per_class.argmax()), int(per_class.argmin())
    names, n = pictures.class_names, len(pictures)
    if per_class[most] >= _UNEVEN * per_class[least]:
        words = Paragraph(
            "own-data/uneven",
            n_most=int(per_class[most]),
            most=names[most],
            n_least=int(per_class[least]),
            least=names[least],
            share=100 * per_class[most] / n,
        )
        said.append(Finding("warning", words))
    untested = [names[at] for at, n in enumerate(counts(pictures, parts)[:, 2]) if not n]
    if untested:
        words = N_(
            "The test has no pictures of {names}.",
            names=_some(untested),
        )
        said.append(Finding("warning", words))
    blank = int((pictures.images.reshape(n, -1).std(1) == 0).sum())
    if blank:
        words = counted(
            "{n:,} of {all:,} pictures is blank.",
            "{n:,} of {all:,} pictures are blank.",
            blank,
            all=n,
        )
        said.append(Finding("warning", words))
    return said


def _on_twins(found: Duplicates) -> list[Finding]:
    said: list[Finding] = []
    if found.n_across:
        words = counted(
            "{n:,} test or validation picture is also in training. Drop the duplicates.",
            "{n:,} test or validation pictures are also in training. Drop the duplicates.",
            found.n_across,
        )
        said.append(Finding("warning", words))
    if found.n_contradicting:
        words = counted(
            "{n:,} picture appears in several classes: no model can tell which is right.",
            "{n:,} pictures appear in several classes: no model can tell which is right.",
            found.n_contradicting,
        )
        said.append(Finding("warning", words))
    if found.n_again and found.example is not None:
        first, second = found.example
        words = counted(
            "{n:,} picture is a duplicate: {second} equals {first}.",
            "{n:,} pictures are duplicates; {second} equals {first}.",
            found.n_again,
            first=first,
            second=second,
        )
        said.append(Finding("note", words))
    return said


def _some(names: list[str], most: int = 5) -> str:
    """Return the first few names in quotation marks."""
    said = ", ".join(f"“{name}”" for name in names[:most])
    more = len(names) - most
    return N_("{names} and {more} more", names=said, more=more) if more > 0 else said


KIND = "pictures"
FILE = "pictures.safetensors"
TEST = PARTS.index("test")
VALIDATION = PARTS.index("validation")


@dataclass(frozen=True, slots=True)
class Split:
    """How pictures are shared out.

    by: ``file`` where folders or files name the splits, ``seed`` where the test is drawn. share: of
    the test, where it is drawn; from each class alike.
    """

    by: str = "seed"
    seed: int = 0
    share: float = 0.15


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The arrays of a set: uint8 (N, C, size, size), classes (N,), places in ``PARTS`` (N,)."""

    images: Grid
    labels: npt.NDArray[np.int64]
    parts: npt.NDArray[np.int8]


def shared_out(pictures: Pictures, split: Split) -> npt.NDArray[np.int8]:
    """Return the split of each picture, (N,) places in ``PARTS``; the same seed, the same test.

    Where files name splits but no test, it is drawn from what they say is for training.
    """
    named = pictures.parts if split.by == "file" else None
    parts = np.zeros(len(pictures), np.int8) if named is None else named.copy()
    if named is not None and (named == TEST).any():
        return parts
    rng = np.random.default_rng(split.seed)
    for label in range(len(pictures.class_names)):
        members = np.flatnonzero((pictures.labels == label) & (parts == 0))
        n = round(split.share * len(members)) if len(members) > 1 else 0
        parts[rng.permutation(members)[: min(max(n, 1), len(members) - 1)]] = TEST
    return parts


def without_doubles(pictures: Pictures) -> Pictures:
    """Return the pictures with one of each that has the very same pixels, the first."""
    seen: dict[bytes, int] = {}
    for at, image in enumerate(pictures.images):
        seen.setdefault(image.tobytes(), at)
    kept = np.array(sorted(seen.values()))
    dropped = len(pictures) - len(kept)
    words = counted("{n:,} duplicate was dropped.", "{n:,} duplicates were dropped.", dropped)
    return dataclasses.replace(_only(pictures, kept), **_also(pictures, {words: dropped}))


def renamed(pictures: Pictures, names: Sequence[str]) -> Pictures:
    """Return the pictures with other names of their classes, one for each class.

    Classes of one name are merged, and the pictures of a class with an empty name are left out.
    Raises ValueError, in a sentence, where no name is left.
    """
    called = [class_label(name) for name in names]
    if not any(called):
        raise StudentError("Name at least two classes.")
    class_names = class_order([name for name in called if name])
    numbers = np.array([class_names.index(name) if name else -1 for name in called])
    labels = numbers[pictures.labels]
    n_each = np.bincount(pictures.labels, minlength=len(called)).tolist()
    reasons: dict[str, int] = {
        N_("{name}: {why}", name=folder, why=N_("This class has no name.")): n
        for folder, name, n in zip(pictures.class_names, called, n_each, strict=True)
        if not name
    }
    notes = tuple(
        N_("“{typed}” was renamed “{name}”.", typed=typed.strip()[:80], name=name)
        for typed, name in dict(zip(names, called, strict=True)).items()
        if name and name != typed.strip()
    )
    left = _only(dataclasses.replace(pictures, labels=labels), np.flatnonzero(labels >= 0))
    return dataclasses.replace(
        left, class_names=class_names, notes=(*left.notes, *notes), **_also(pictures, reasons)
    )


def _only(pictures: Pictures, kept: npt.NDArray[np.int64]) -> Pictures:
    """Return the pictures at some places."""
    return dataclasses.replace(
        pictures,
        images=pictures.images[kept],
        labels=pictures.labels[kept],
        names=tuple(pictures.names[at] for at in kept),
        parts=None if pictures.parts is None else pictures.parts[kept],
    )


def _also(pictures: Pictures, reasons: Mapping[str, int]) -> dict[str, Any]:
    """Return what was left out, with more reasons and how many pictures each takes out."""
    return {
        "left_out": (*reasons, *pictures.left_out),
        "n_left_out": pictures.n_left_out + sum(reasons.values()),
    }


def ground_of(images: Grid) -> Ground:
    """Return what pictures (N, C, size, size) have along their border: nine in ten dark, or bright.

    Pictures of one's own are inverted to suit a model that learned drawings; photographs are not.
    """
    border = np.concatenate(
        [images[..., 0, :], images[..., -1, :], images[..., 0], images[..., -1]], -1
    )
    usual = np.median(border.reshape(len(images), -1), axis=1)
    if (usual < 64).mean() >= 0.9:
        return "dark"
    return "bright" if (usual > 191).mean() >= 0.9 else "any"


def prepare(pictures: Pictures, name: str, split: Split) -> Prepared:
    """Return a set that is ready to be written. Raises ValueError, in a sentence."""
    from safetensors.numpy import save

    parts = shared_out(pictures, split)
    for found in findings(pictures, parts):
        if found.level == "problem":
            raise StudentError(found.sentence)
    counts = np.bincount(parts, minlength=len(PARTS))
    # safetensors writes memory as it lies: coloured pictures were turned from (H, W, C)
    images = np.ascontiguousarray(pictures.images)
    files = {
        FILE: save({"images": images, "labels": pictures.labels.astype(np.int16), "parts": parts})
    }
    _n, channels, size, _width = pictures.images.shape
    return Prepared(
        kind=KIND,
        name=name,
        counts={part: int(n) for part, n in zip(PARTS, counts, strict=True)},
        split=dataclasses.asdict(split),
        details={
            "size": size,
            "channels": channels,
            "ground": ground_of(pictures.images),
            "classes": list(pictures.class_names),
        },
        files=files,
    )


def arrays(own: OwnSet) -> Kept:
    """Return the pictures of a set. Raises SetDamaged, in a sentence."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        found: dict[str, Any] = load(own.content(FILE))
        kept = Kept(found["images"], found["labels"].astype(np.int64), found["parts"])
    except (SafetensorError, KeyError, ValueError) as error:
        if isinstance(error, StudentError):
            raise
        raise damaged(own.name, N_("{file} is damaged", file=FILE)) from None
    n = len(kept.labels)
    shape = (n, own.details["channels"], own.details["size"], own.details["size"])
    fits = (
        kept.images.shape == shape
        and kept.images.dtype == np.uint8
        and kept.parts.shape == (n,)
        and n > 0
        and kept.labels.min() >= 0
        and kept.labels.max() < len(own.details["classes"])
        and np.isin(kept.parts, range(len(PARTS))).all()
    )
    if not fits:
        raise damaged(own.name, N_("{file} is damaged", file=FILE))
    return kept


def as_pictures(own: OwnSet) -> Pictures:
    """Return a set as it could be read from a zip. Raises SetDamaged, in a sentence."""
    kept, classes = arrays(own), tuple(own.details["classes"])
    by_file = own.split.get("by") == "file"
    names = tuple(
        f"{PARTS[part]}/{classes[label]}/{at:05}.png"
        if by_file
        else f"{classes[label]}/{at:05}.png"
        for at, (label, part) in enumerate(zip(kept.labels, kept.parts, strict=True), 1)
    )
    parts = kept.parts if by_file else None
    return Pictures(kept.images, kept.labels, classes, names, parts)


def is_sound(details: object) -> bool:
    """Say whether what a set says of its pictures can be so."""
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
