"""The files of MNIST: whether the full set is there and is the official one."""

from __future__ import annotations

from tfm_core.data.download import matches
from tfm_core.data.image_files import SOURCES, data_dir
from tfm_core.doctor.finding import Finding

_ANEW = "Do: delete them; they are downloaded again when they are asked for."


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
        words = f"In {folder.absolute()} these are not the official files: {', '.join(others)}."
        return Finding("MNIST", "warning", words, f"If that isn't meant: {_ANEW}")
    missing = sorted(source.unpacked.keys() - plain - packed)
    if missing:
        words = f"{folder.absolute()} lacks {', '.join(missing)}; the first training fetches them."
        return Finding("MNIST", "warning", words)
    return Finding("MNIST", "ok", f"{folder.absolute()} has all of it.")
