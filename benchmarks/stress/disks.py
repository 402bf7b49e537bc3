"""Failing disks under the command line: full, read-only, forbidden, gone.

Each disk is a real one, mounted for it (tmpfs), so this needs Linux and the right to mount.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from safetensors.numpy import load_file

from benchmarks.report import Skipped, Table
from benchmarks.served import ROOT
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

SEED = 0
STEPS = 60
SIZES = (4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256, 384, 768, 1536, 2560, 6144)
QUICK_SIZES = (4, 16, 24, 128, 1536)
_CAPABILITIES = "-dac_override,-dac_read_search"
CONFINED = ("setpriv", "--bounding-set", _CAPABILITIES, "--inh-caps", _CAPABILITIES)
"""Runs a command to which permissions apply, also where root runs it."""

DEADLINE_SECONDS = 120.0
_TRAIN = ("train", "--preset", "copy", "--set", f"training.steps={STEPS}", "--seed", str(SEED))


@dataclass
class Found:
    """Of ``tried`` disks, how many held, and what failed, in words."""

    tried: int = 0
    held: int = 0
    fell: list[str] = field(default_factory=list)

    def note(self, name: str, *problems: str | None) -> None:
        """Note one disk, and what was wrong there."""
        wrong = [problem for problem in problems if problem]
        self.tried += 1
        self.held += not wrong
        self.fell += [f"{name}: {problem}" for problem in wrong]

    def row(self, what: str) -> tuple[str, str, str, str]:
        """Return a row of the table."""
        return what, f"{self.tried}", f"{self.held}", "; ".join(self.fell) or "-"


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Fill, forbid, write-protect and remove the disk of the runs."""
    title = "Disks that fail"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "disk"
        place.mkdir()
        if not _mount(place, "size=1m"):
            yield Skipped(title, "no disk can be mounted here")
            return
        _unmount(place)
        sizes = QUICK_SIZES if quick else SIZES
        full = _full(place, sizes)
        rows = [
            full.row(f"full: {sizes[0]} KiB to {sizes[-1]:,} KiB, then larger; resumed bit-equal"),
            _read_only(place).row("read-only, then writable"),
            _forbidden(place).row("without permissions, then with them"),
            _gone(place).row("removed while it trains"),
            _no_folder(place).row("TFM_RUNS_DIR names a file, or lies below one"),
        ]
        notes = (
            f"Each by the real command line, seed {SEED}, {STEPS} steps.",
            "Held: one sentence without a path, an error number or a traceback; no half run left; "
            "what was there before is there after; and it goes on once the disk does.",
        )
        yield Table(title, ("disk", "tried", "held", "fell"), rows, notes)


def _full(place: Path, sizes: tuple[int, ...]) -> Found:
    """Train on disks of many sizes, make room, resume, and compare with a run on a large one."""
    with _disk(place, "size=32m") as root:
        _cli(root, *_TRAIN)
        wanted = _weights(_only(root))
    found = Found()
    for size in sizes:
        with _disk(place, f"size={size}k") as root:
            code, said = _cli(root, *_TRAIN)
            name, runs = f"{size} KiB", RunStore(root, recorded=None).list()
            problems = [_left_over(root)]
            if code:
                problems.append(_not_a_sentence(said, root))
            if runs and code:
                reason = str(runs[0].status.reason)
                ended = runs[0].status.state == "failed" and "disk is full" in reason
                problems.append(None if ended else f"told as {runs[0].status.state}: {reason}")
            _mount(place, "remount,size=32m")
            if runs and code:
                code, said = _cli(root, "resume", runs[0].id)
                problems.append(None if code == 0 else f"not resumed: {said}")
            elif code:
                problems.append(None if _cli(root, *_TRAIN)[0] == 0 else "not started afterwards")
            problems.append(None if _weights(_only(root)) == wanted else "other weights")
            found.note(name, *problems)
    return found


def _read_only(place: Path) -> Found:
    """Train, resume and list on a disk that can only be read."""
    found = Found()
    with _disk(place, "size=32m") as root:
        _cli(root, *_TRAIN)
        run = _stopped(root)
        before = _content(root)
        _mount(place, "remount,ro")
        for words in (_TRAIN, ("resume", run.id)):
            code, said = _cli(root, *words)
            found.note(words[0], None if code else "no error", _not_a_sentence(said, root))
        code, said = _cli(root, "runs")
        found.note("runs", None if code == 0 and run.id in said else said)
        found.note("files", None if _content(root) == before else "other files than before")
        _mount(place, "remount,rw")
        code, said = _cli(root, "resume", run.id)
        found.note("resumed", None if code == 0 else said)
    return found


def _forbidden(place: Path) -> Found:
    """Train and resume in a folder that is read-only or unreadable."""
    found = Found()
    with _disk(place, "size=32m") as root:
        _cli(root, *_TRAIN)
        run = _stopped(root)
        folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
        for mode in (0o555, 0o000):
            for folder in folders:
                folder.chmod(mode)
            before = _content(root)
            for words in (_TRAIN, ("resume", run.id), ("runs",)):
                code, said = _cli(root, *words, before=CONFINED)
                name = f"{words[0]} {mode:o}"
                is_list = words[0] == "runs"
                problem = None if code or is_list else "no error"
                found.note(name, problem, None if is_list else _not_a_sentence(said, root))
                if is_list:
                    found.note(name, "a traceback" if "Traceback" in said else None)
            found.note(f"files {mode:o}", None if _content(root) == before else "changed")
        for folder in folders:
            folder.chmod(0o755)
        found.note("resumed", None if _cli(root, "resume", run.id)[0] == 0 else "not resumed")
    return found


def _gone(place: Path) -> Found:
    """Remove the run, or the whole folder, while it trains."""
    found = Found()
    for name in ("run", "folder"):
        with _disk(place, "size=32m") as disk:
            root = disk / "runs"
            process = _begin(root, *_TRAIN[:3], "--set", "training.steps=100000")
            run = _wait(process, lambda root=root: _training(root))
            os.rename(root if name == "folder" else run.folder, disk / "elsewhere")
            said = _end_of(process)
            problem = None if process.returncode else "no error"
            found.note(name, problem, _not_a_sentence(said, root))
            code, said = _cli(root, *_TRAIN)
            found.note(f"{name}, a new run", None if code == 0 else said)
    return found


def _no_folder(place: Path) -> Found:
    """Name a file as the folder of runs."""
    found = Found()
    with _disk(place, "size=1m") as root:
        file = root / "file"
        file.write_text("no folder", encoding="utf-8")
        for name, named in (("a file", file), ("below a file", file / "runs")):
            for words in (_TRAIN, ("runs",)):
                code, said = _cli(named, *words)
                one = said.startswith("TFM_RUNS_DIR is ") and said.count("\n") == 0
                found.note(f"{name}, {words[0]}", None if code == 2 and one else said)
        found.note("file", None if file.read_text(encoding="utf-8") == "no folder" else "changed")
    return found


@contextmanager
def _disk(place: Path, options: str) -> Iterator[Path]:
    if not _mount(place, options):
        raise OSError(f"tmpfs cannot be mounted with {options}")
    try:
        yield place
    finally:
        _unmount(place)


def _mount(place: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "-l", str(place)], capture_output=True, check=True)


def _begin(root: Path, *words: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
    quiet = ["--quiet"] if words[0] in {"train", "resume"} else []
    return subprocess.Popen(
        [*before, sys.executable, "-m", "tfm_core", *words, *quiet],
        cwd=ROOT,
        env={**os.environ, "TFM_RUNS_DIR": str(root), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _cli(root: Path, *words: str, before: Sequence[str] = ()) -> tuple[int, str]:
    """Run the command line on a folder of runs; return its exit code and output."""
    process = _begin(root, *words, before=before)
    said = _end_of(process)
    return process.returncode, said


def _end_of(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=DEADLINE_SECONDS)[0].strip()
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        return f"it did not end within {DEADLINE_SECONDS:g} s: {process.communicate()[0]}"


def _wait(process: subprocess.Popen[str], look: Callable[[], Run | None]) -> Run:
    end = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if (run := look()) is not None:
            return run
        time.sleep(0.05)
    raise RuntimeError(f"the training did not begin: {_end_of(process)}")


def _training(root: Path) -> Run | None:
    runs = RunStore(root, recorded=None).list()
    return next(
        (run for run in runs if run.status.state == "running" and run.status.step > 3), None
    )


def _stopped(root: Path) -> Run:
    """Add a run that is not trained to its end."""
    store = RunStore(root, recorded=None)
    return store.fork(store.list()[0].id, steps=STEPS + 20)


def _only(root: Path) -> Run:
    (run,) = RunStore(root, recorded=None).list()
    return run


def _weights(run: Run) -> str:
    """Return the whole last checkpoint in one string that two equal ones share."""
    tensors = load_file(run.folder / "checkpoints" / "last" / "checkpoint.safetensors")
    return json.dumps({name: value.tobytes().hex() for name, value in sorted(tensors.items())})


def _content(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _left_over(root: Path) -> str | None:
    left = [path.name for path in root.iterdir() if path.name.startswith((".new-", ".gone-"))]
    return f"left {left}" if left else None


def _not_a_sentence(said: str, root: Path) -> str | None:
    """Return what is wrong with the message of a refusal, or None."""
    lines = said.splitlines()
    is_one = len(lines) == 1 and said.endswith(".")
    is_clean = not any(part in said for part in ("Traceback", "Errno", "os error", str(root)))
    return None if is_one and is_clean else f"said {said[-300:]!r}"
