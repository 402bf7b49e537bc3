"""What is remarkable about a set of pictures before anything learns from it.

Duplicates are pictures of the very same pixels, as they are after they were made one size.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tfm_core.data.own.pictures import PARTS, Pictures
from tfm_core.sentences import N_, counted

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
        words = N_(
            "Classes are uneven: {n_most:,} “{most}”, {n_least:,} “{least}”. Always "
            "answering “{most}” is right {share:.0f} % of the time.",
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
