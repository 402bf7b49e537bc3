"""A set of pictures: how it is split, what is wrong with it, how it is written and read.

Duplicates are pictures of the same pixels, after they were made one size.
"""

from __future__ import annotations

import dataclasses
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
from tfm_core.data.own.sets import OwnSet, Prepared, SetDamaged, damaged
from tfm_core.reading import check_header
from tfm_core.sentences import N_, Paragraph, StudentError

KIND = "pictures"
FILE = "pictures.safetensors"
TEST = PARTS.index("test")
VALIDATION = PARTS.index("validation")
MIN_PICTURES = 24
"""Pictures that a set must have: eight for validation, some for the test, and some to learn."""
_UNEVEN = 5  # ratio of class sizes from which a warning is given

Level = Literal["problem", "warning", "note"]


@dataclass(frozen=True, slots=True)
class SetFinding:
    """A message about a set. ``problem``: nothing could be learned from it, so it isn't kept."""

    level: Level
    sentence: str


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Counts of identical pictures.

    n_again: pictures whose pixels another one before them has. n_across: those of the test or
    validation that stand in another split too. n_contradicting: those whose twin has another class.
    example: the names of two of them.
    """

    n_again: int = 0
    n_across: int = 0
    n_contradicting: int = 0
    example: tuple[str, str] | None = None


def findings(pictures: Pictures, parts: npt.NDArray[np.int8]) -> list[SetFinding]:
    """Return what is wrong with or worth knowing about pictures and their splits.

    parts: (N,) places in ``PARTS``.
    """
    warnings = [SetFinding("warning", words) for words in pictures.warnings]
    if problem := _problem(pictures, parts):
        return [SetFinding("problem", problem), *warnings]
    if names := _untrained(pictures, parts):
        words = N_("Only the test has {names}, so the model cannot learn them.", names=_some(names))
        warnings.insert(0, SetFinding("warning", words))
    same = duplicates(pictures, parts)
    warnings += [SetFinding("warning", words) for words in _warnings(pictures, parts, same)]
    if same.example is None:
        return warnings
    words = N_(
        "Duplicate pictures: {n:,}; {second} equals {first}.",
        n=same.n_again,
        first=same.example[0],
        second=same.example[1],
    )
    return [*warnings, SetFinding("note", words)]


def counts(pictures: Pictures, parts: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Return how many pictures each class has in each split, (classes, splits)."""
    table = np.zeros((len(pictures.class_names), len(PARTS)), np.int64)
    np.add.at(table, (pictures.labels, parts), 1)
    return table


def duplicates(pictures: Pictures, parts: npt.NDArray[np.int8]) -> Duplicates:
    """Return counts of identical pictures."""
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


def _problem(pictures: Pictures, parts: npt.NDArray[np.int8]) -> str | None:
    """Return why nothing could be learned from a set, or None."""
    n, names = len(pictures), pictures.class_names
    if len(names) < 2:
        return N_(
            "All {n:,} pictures are in one class, “{name}”. Use at least two folders.",
            n=n,
            name=names[0],
        )
    if n > 1 and (pictures.images == pictures.images[:1]).all():
        return N_("All {n:,} pictures are the same. Are they packed correctly?", n=n)
    if n < MIN_PICTURES:
        return N_("Pictures: {n}; at least {least} are needed.", n=n, least=MIN_PICTURES)
    n_training = int((parts != TEST).sum())
    n_classes = len(names) - len(_untrained(pictures, parts))
    if n_training < MIN_PICTURES // 2 or n_classes < 2:
        return N_(
            "The test leaves {n} training pictures of {n_classes} classes. Make it smaller.",
            n=n_training,
            n_classes=n_classes,
        )
    return None


def _untrained(pictures: Pictures, parts: npt.NDArray[np.int8]) -> list[str]:
    """Return the classes of which only the test has pictures."""
    trained = set(pictures.labels[parts != TEST].tolist())
    return [name for at, name in enumerate(pictures.class_names) if at not in trained]


def _warnings(pictures: Pictures, parts: npt.NDArray[np.int8], same: Duplicates) -> Iterator[str]:
    """Yield warnings on uneven and untested classes, blank pictures and duplicates."""
    table = counts(pictures, parts)
    per_class = table.sum(1)
    largest, smallest = int(per_class.argmax()), int(per_class.argmin())
    names, n = pictures.class_names, len(pictures)
    if per_class[largest] >= _UNEVEN * per_class[smallest]:
        yield Paragraph(
            "own-data/uneven",
            n_most=int(per_class[largest]),
            most=names[largest],
            n_least=int(per_class[smallest]),
            least=names[smallest],
            share=100 * per_class[largest] / n,
        )
    untested = [names[at] for at, n_tested in enumerate(table[:, TEST]) if not n_tested]
    if untested:
        yield N_("The test has no pictures of {names}.", names=_some(untested))
    n_blank = int((pictures.images.reshape(n, -1).std(1) == 0).sum())
    if n_blank:
        yield N_("Blank pictures: {n:,} of {all:,}.", n=n_blank, all=n)
    if same.n_across:
        yield N_(
            "Test or validation pictures also in training: {n:,}. Drop the duplicates.",
            n=same.n_across,
        )
    if same.n_contradicting:
        yield N_(
            "Pictures in several classes: {n:,}; no model can tell which is right.",
            n=same.n_contradicting,
        )


def _some(names: list[str], limit: int = 5) -> str:
    """Return the first few names in quotation marks."""
    quoted = ", ".join(f"“{name}”" for name in names[:limit])
    more = len(names) - limit
    return N_("{names} and {more} more", names=quoted, more=more) if more > 0 else quoted


@dataclass(frozen=True, slots=True)
class Split:
    """How pictures are split.

    by: ``file`` where folders or files name the splits, ``seed`` where the test is drawn. share: of
    the test, where it is drawn; from each class alike.
    """

    by: str = "seed"
    seed: int = 0
    share: float = 0.15


def split_parts(pictures: Pictures, split: Split) -> npt.NDArray[np.int8]:
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


def without_duplicates(pictures: Pictures) -> Pictures:
    """Return the pictures without duplicates, the first of each kept."""
    first: dict[bytes, int] = {}
    for at, image in enumerate(pictures.images):
        first.setdefault(image.tobytes(), at)
    n = len(pictures) - len(first)
    return _subset(pictures, list(first.values()), {N_("Duplicates dropped: {n:,}.", n=n): n})


def renamed(pictures: Pictures, names: Sequence[str]) -> Pictures:
    """Return the pictures with their classes renamed, one name per class.

    Classes of one name are merged, and the pictures of a class with an empty name are left out.
    Raises ValueError where no name is left.
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
    pictures = dataclasses.replace(
        pictures, labels=labels, class_names=class_names, notes=(*pictures.notes, *notes)
    )
    return _subset(pictures, np.flatnonzero(labels >= 0).tolist(), reasons)


def _subset(pictures: Pictures, places: list[int], reasons: Mapping[str, int]) -> Pictures:
    """Return the pictures at these indices. reasons: why others are left out, and how many."""
    return dataclasses.replace(
        pictures,
        images=pictures.images[places],
        labels=pictures.labels[places],
        names=tuple(pictures.names[at] for at in places),
        parts=None if pictures.parts is None else pictures.parts[places],
        left_out=(*reasons, *pictures.left_out),
        n_left_out=pictures.n_left_out + sum(reasons.values()),
    )


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


def prepare(pictures: Pictures, name: str, split: Split) -> Prepared:
    """Return a set that is ready to be written. Raises ValueError."""
    from safetensors.numpy import save

    parts = split_parts(pictures, split)
    if problem := _problem(pictures, parts):
        raise StudentError(problem)
    n_each = np.bincount(parts, minlength=len(PARTS)).tolist()
    # safetensors writes memory as it lies: coloured pictures were turned from (H, W, C)
    images = np.ascontiguousarray(pictures.images)
    labels = pictures.labels.astype(np.int16)
    tensors: dict[str, Any] = {"images": images, "labels": labels, "parts": parts}
    _n, channels, size, _width = pictures.images.shape
    return Prepared(
        kind=KIND,
        name=name,
        counts=dict(zip(PARTS, n_each, strict=True)),
        split=dataclasses.asdict(split),
        details={
            "size": size,
            "channels": channels,
            "ground": ground_of(pictures.images),
            "classes": list(pictures.class_names),
        },
        files={FILE: save(tensors)},
    )


def pictures_of(own: OwnSet) -> tuple[Pictures, npt.NDArray[np.int8]]:
    """Return the pictures of a set, and the split of each, (N,). Raises SetDamaged."""
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
            and np.isin(parts, range(len(PARTS))).all()
        )
    except SetDamaged:
        raise
    except (SafetensorError, KeyError, ValueError):
        fits = False
    if not fits:
        raise damaged(own.name, N_("{file} is damaged", file=FILE))
    by_file = own.split.get("by") == "file"
    names = tuple(
        (f"{PARTS[part]}/" if by_file else "") + f"{classes[label]}/{at:05}.png"
        for at, (label, part) in enumerate(zip(labels, parts, strict=True), 1)
    )
    return Pictures(images, labels, classes, names, parts if by_file else None), parts


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
