"""What the folders of an upload mean: wrappers, splits and classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tfm_core.data.own.pictures import PARTS, Folders, Part, part_of, shown
from tfm_core.sentences import StudentError

Path = tuple[str, ...]
"""Folders from the outermost to the innermost."""

Place = tuple[int | None, str]
"""A split as its place in ``PARTS``, where one is named, and the folder of a class."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the folders of the classes are.

    wrapper: folders around all others. splits: for each folder of a split, the split and the
    folders in it around the classes; None where there are no splits above the classes.
    is_split_inside: whether splits are folders in those of the classes. names: the folders that
    are splits or classes where both are possible, else none.
    """

    wrapper: Path
    splits: Mapping[str, tuple[Part, Path]] | None = None
    is_split_inside: bool = False
    names: tuple[str, ...] = ()

    def place(self, folder: Path) -> Place | None:
        """Return the split and the class of a folder, None where it is in no class folder."""
        rest = _without(folder, self.wrapper)
        if not rest:
            return None
        if self.is_split_inside:
            part = part_of(rest[1]) if len(rest) > 1 else None
            return None if part is None else (PARTS.index(part), rest[0])
        if self.splits is None:
            return None, rest[0]
        if rest[0] not in self.splits:
            return None
        part, inner = self.splits[rest[0]]
        rest = _without(rest[1:], inner)
        return (PARTS.index(part), rest[0]) if rest else None


def layout_of(folders: Sequence[Path], choice: Folders | None = None) -> Layout:
    """Return what the folders of pictures mean, one for each picture.

    choice: what the outer folders are, where they may be splits or classes. Raises StudentError
    where they are splits without classes in them.
    """
    different = {folder for folder in folders if folder}
    wrapper: Path = ()
    while len({folder[0] for folder in different}) == 1 and any(len(one) > 1 for one in different):
        wrapper += (next(iter(different))[0],)
        different = {folder[1:] for folder in different if len(folder) > 1}
    names = sorted({folder[0] for folder in different})
    parts = {name: part for name in names if (part := part_of(name))}
    has_inner = any(len(folder) > 1 and folder[0] in parts for folder in different)
    kinds = set(parts.values())
    if not has_inner:
        if len(kinds) > 1:
            raise StudentError(
                "The folders {names} are named like splits but hold no class folders. Use "
                "folders such as train/cat and test/cat; annotation files are not supported.",
                names=", ".join(f"“{shown(name)}”" for name in parts),
            )
        is_inside = len(names) > 1 and _are_splits(different)
        return Layout(wrapper, is_split_inside=is_inside)
    is_clear = len(kinds) > 1 and len(parts) == len(names)
    guess: Folders = "splits" if len(kinds) > 1 or len(parts) == len(names) else "classes"
    asked = () if is_clear else tuple(names)
    if (choice or guess) == "classes":
        return Layout(wrapper, names=asked)
    return Layout(wrapper, _splits(different, parts), names=asked)


def _are_splits(folders: Iterable[Path]) -> bool:
    """Say whether all second folders are splits, of two kinds or more."""
    kinds = {part_of(folder[1]) if len(folder) > 1 else None for folder in folders}
    return None not in kinds and len(kinds) > 1


def _splits(folders: Iterable[Path], parts: Mapping[str, Part]) -> dict[str, tuple[Part, Path]]:
    """Return the split of each folder, and the folders in it that are around the classes."""
    inner: dict[str, Path] = {}
    below: dict[str, set[Path]] = {name: set() for name in parts}
    for folder in folders:
        if folder[0] in parts and len(folder) > 1:
            below[folder[0]].add(folder[1:])
    for name, rests in below.items():
        inner[name] = ()
        while (only := _only(rests)) and part_of(only) == parts[name]:  # seg_train/seg_train/cat
            inner[name] += (only,)
            rests = below[name] = {rest[1:] for rest in rests if len(rest) > 1}
    while all(_only(rests) for rests in below.values() if rests):  # train/images/cat
        for name, rests in below.items():
            if only := _only(rests):
                inner[name] += (only,)
                below[name] = {rest[1:] for rest in rests if len(rest) > 1}
    return {name: (part, inner[name]) for name, part in parts.items()}


def _only(rests: Iterable[Path]) -> str:
    """Return the first folder where all share it and some go on below it, else ""."""
    first = {rest[0] for rest in rests}
    return first.pop() if len(first) == 1 and any(len(rest) > 1 for rest in rests) else ""


def _without(folder: Path, outer: Path) -> Path:
    """Return a folder below an outer one, () where it is not below it."""
    return folder[len(outer) :] if folder[: len(outer)] == outer else ()
