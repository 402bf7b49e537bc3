"""The doctor: checks everything that the app needs, and prints a line each."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from tfm_core import settings
from tfm_core.data.download import SOURCES, DataUnavailable, idx_count, matches
from tfm_core.data.image_data import data_dir
from tfm_core.runs.disk import locks, quota, trash
from tfm_core.runs.disk.failures import refusal
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.ray_jobs import RayJobs
from tfm_core.runs.queue.waiting_line import Unavailable
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError, in_bytes
from tfm_core.training.devices import devices

Level = Literal["ok", "warning", "problem"]

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor. do: what would help.

    ``problem``: something essential does not work, or not for long.
    """

    name: str
    level: Level
    words: str
    do: str | None = None

    def __str__(self) -> str:
        """Return the finding as text."""
        line = f"{self.level:<8} {self.name:<11} {self.words}"
        return f"{line} {self.do}" if self.do else line


def examine() -> Iterator[Finding]:
    """Yield what each check finds, one after the other."""
    variables = check_variables()
    yield variables
    yield check_versions()
    yield check_torchvision()
    there = [device for device in devices() if device.available]
    names = [
        f"{device.name} ({device.label})"
        if device.memory_free is None
        else f"{device.name} ({device.label}, {in_bytes(device.memory_free)} free)"
        for device in there
    ]
    yield Finding("devices", "ok", f"{', '.join(names)}.")
    yield check_mnist()
    if variables.level == "problem":  # the folder of runs is unknown
        return
    yield check_backend()
    store = RunStore()
    yield check_folder(store)
    yield check_disk(store)
    yield check_runs(store)


def some(names: Iterable[str]) -> str:
    """Return the first few names, and how many more there are."""
    known = list(names)
    more = len(known) - _SHOWN
    return ", ".join(known[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def count(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def check_variables() -> Finding:
    """Read every variable; name unknown ones, with the nearest known name."""
    try:
        settings.checked()
    except StudentError as error:
        return Finding("variables", "problem", str(error), "The app and training cannot start.")
    if unknown := settings.unknown():
        return Finding("variables", "warning", " ".join(map(str, unknown)))
    there = sorted(name for name in os.environ if name.startswith("TFM_") and os.environ[name])
    return Finding("variables", "ok", f"{', '.join(there) or 'None'} set.")


REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements.txt"
"""It is beside the package in a checkout, and missing in an installation."""

CPU_BUILDS = "pip install torch torchvision --index-url https://download.pytorch.org/whl/cpu"


def check_versions(requirements: Path = REQUIREMENTS) -> Finding:
    """Compare the installed packages with the requirements."""
    missing, others = [], []
    if requirements.is_file():
        lines = requirements.read_text(encoding="utf-8").splitlines()
    else:
        lines = importlib.metadata.requires("watch-a-transformer-learn") or []
    wanted = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    for requirement in wanted:
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(str(requirement))
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            others.append(f"{requirement.name} {version}, not {requirement.specifier}")
    if missing:
        words = f"Not installed: {', '.join(missing)}."
        return Finding("versions", "problem", words, "Do: pip install -r requirements.txt")
    if others:
        words = f"Other releases than required: {'; '.join(others)}."
        return Finding("versions", "warning", words, "Do: pip install -r requirements.txt")
    words = f"Python {platform.python_version()} and {count(len(wanted), 'package')} as required."
    return Finding("versions", "ok", words)


def check_torchvision() -> Finding:
    """Return whether torchvision fits torch; PyPI's doesn't beside a CPU-only torch on Linux."""
    import torch

    try:
        from tfm_core.data.torchvision_import import MISSING, torchvision
    except (ImportError, OSError, RuntimeError) as error:
        words = f"torchvision cannot be imported beside torch {torch.__version__}: {error}."
        return Finding("torchvision", "problem", words, f"Do: {CPU_BUILDS}")
    both = f"torchvision {torchvision.__version__} and torch {torch.__version__}"
    if MISSING:
        words = f"{both} are built for different machines; the app works with them."
    else:
        words = f"{both} fit."
    return Finding("torchvision", "ok", words)


_ANEW = "Do: move them away; complete ones are downloaded when needed."
_OWN = "To use the official set, move them away: it is downloaded."


def check_mnist() -> Finding:
    """Compare the files of MNIST with their checksums; nothing is downloaded."""
    source = SOURCES["mnist"]
    folder = data_dir() / source.dataset / "raw"
    plain = {name for name in source.unpacked if (folder / name).is_file()}
    packed = {name for name in source.unpacked if (folder / f"{name}.gz").is_file()}
    if not plain | packed:
        words = f"{folder.absolute()} has no MNIST; 5,000 of its digits come with the app."
        return Finding("MNIST", "ok", words)
    others = sorted(name for name in plain if not matches(folder / name, source.unpacked[name]))
    if others:
        return _others(folder, others)
    missing = sorted(source.unpacked.keys() - plain - packed)
    if missing:
        words = (
            f"{folder.absolute()} lacks {', '.join(missing)}; the first training downloads them."
        )
        return Finding("MNIST", "warning", words)
    return Finding("MNIST", "ok", f"{folder.absolute()} is complete.")


def _others(folder: Path, names: list[str]) -> Finding:
    """Distinguish your own data set from damaged files."""
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
    words = f"{folder.absolute()} has a data set of your own, used as it is: {held}."
    return Finding("MNIST", "warning", words, _OWN)


def check_backend() -> Finding:
    """Ask Ray, if it trains, for its release."""
    address = settings.read().ray_address
    if address is None:
        return Finding("backend", "ok", "local: processes of this machine train.")
    try:
        release = RayJobs(RunStore().root, Limits(), address).release()
    except Unavailable as error:
        return Finding("backend", "problem", str(error))
    return Finding("backend", "ok", f"Ray {release} at {address} trains the runs.")


SHORT_BYTES = 2**30
"""Free space below which some dozen runs fill the disk."""

_TRIED = b"\0" * 4096


def check_folder(store: RunStore) -> Finding:
    """Write into the folder, and lock what was written."""
    root = store.root
    if not root.is_dir():
        return Finding("folder", "ok", f"{root} does not exist yet; the first run creates it.")
    try:
        with tempfile.TemporaryDirectory(dir=root, prefix=trash.DRAFT) as folder:
            file = Path(folder) / "tried"
            file.write_bytes(_TRIED)
            lock = locks.lock(file)
            is_locked = locks.is_locked(file)
            locks.unlock(lock)
    except OSError as error:
        words = f"{root} cannot be written. {refusal(error)}"
        return Finding("folder", "problem", words)
    if not is_locked:
        words = f"{root} can be written, but its file system has no locks."
        return Finding("folder", "warning", words, "Use it from one server at a time.")
    return Finding("folder", "ok", f"{root} can be written, and its locks work.")


def check_disk(store: RunStore) -> Finding:
    """Report the free space and what uses the rest."""
    runs = [run for run in store.list() if not run.meta.recorded]
    found = quota.disk_use(store.root, runs)
    words = (
        f"{in_bytes(found.free)} free; {in_bytes(found.runs)} in {count(found.n_runs, 'run')}, "
        f"{in_bytes(found.deleted)} in the trash ({found.n_deleted:,})."
    )
    if found.free < SHORT_BYTES:
        level: Level = "problem" if found.free < len(_TRIED) else "warning"
        return Finding("disk", level, words, "Do: delete runs; the trash is emptied first.")
    return Finding("disk", "ok", words)


def check_runs(store: RunStore) -> Finding:
    """Name the runs that cannot be shown, and count those that can be resumed."""
    runs = [run for run in store.list() if not run.meta.recorded]
    damaged = [run.id for run in runs if run.problem is not None]
    ended = sum(run.status.state == "interrupted" for run in runs if run.id not in damaged)
    if damaged:
        words = f"{count(len(damaged), 'damaged run')}: {some(damaged)}."
        return Finding("runs", "warning", words, "See the page Runs.")
    words = f"{count(len(runs), 'run')}, none damaged, {ended:,} interrupted."
    return Finding("runs", "ok", words)
