"""A set of pictures as it is kept: what is tested, how it is written, and how it is read again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

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
from tfm_core.data.own.pictures_findings import findings
from tfm_core.data.own.sets import OwnSet, Prepared, SetDamaged
from tfm_core.sentences import N_, StudentError, counted

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
        raise _damaged(own) from None
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
        raise _damaged(own)
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


def _damaged(own: OwnSet) -> SetDamaged:
    return SetDamaged(
        "The set “{name}” is damaged. Remove it and add your data again; its runs still open.",
        name=own.name,
    )
