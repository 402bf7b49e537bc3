"""The picture sets that were put into the folder of data: whose they are, and whether whole."""

from __future__ import annotations

from pathlib import Path

from tfm_core.data.download import SOURCES, DataUnavailable, matches
from tfm_core.data.idx import idx_count
from tfm_core.data.image_files import data_dir
from tfm_core.doctor.finding import Finding

_ANEW = "Do: put them elsewhere; whole ones are downloaded when they are asked for."
_OWN = "If they are yours, all is well. For the official set, put them elsewhere: it is downloaded."


def check_mnist() -> Finding:
    """Compare the files of MNIST with their checksums; nothing is downloaded."""
    source = SOURCES["mnist"]
    folder = data_dir() / source.dataset / "raw"
    plain = {name for name in source.unpacked if (folder / name).is_file()}
    packed = {name for name in source.unpacked if (folder / f"{name}.gz").is_file()}
    if not plain | packed:
        words = f"{folder.absolute()} has none of MNIST; 5,000 of its digits come with the app."
        return Finding("MNIST", "ok", words)
    others = sorted(name for name in plain if not matches(folder / name, source.unpacked[name]))
    if others:
        return _others(folder, others)
    missing = sorted(source.unpacked.keys() - plain - packed)
    if missing:
        words = f"{folder.absolute()} lacks {', '.join(missing)}; the first training fetches them."
        return Finding("MNIST", "warning", words)
    return Finding("MNIST", "ok", f"{folder.absolute()} has all of it.")


def _others(folder: Path, names: list[str]) -> Finding:
    """Tell a set of one's own, of as many pictures as there are, from files that are damaged."""
    counts, damaged = {}, []
    for name in names:
        try:
            counts[name] = idx_count(folder / name, (28, 28) if "images" in name else ())
        except DataUnavailable:
            damaged.append(name)
    if damaged:
        words = f"In {folder.absolute()} these are not the official files: {', '.join(damaged)}."
        return Finding("MNIST", "warning", f"{words} No training can read them.", _ANEW)
    held = ", ".join(f"{name} ({n:,})" for name, n in counts.items())
    words = f"{folder.absolute()} holds a set of your own, used as it is: {held}."
    return Finding("MNIST", "warning", words, _OWN)
