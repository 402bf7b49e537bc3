"""Open a Hugging Face folder as a run: weights, tokenizer, a probe and one snapshot.

The folder is untrusted. Everything is checked before the run appears; where something is wrong,
nothing of it stays. Weights are converted tensor by tensor, so that the model is in memory once.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from tfm_core.data.opened_folder import (
    CONFIG,
    MAX_BYTES,
    SUFFIXES,
    Folder,
    Unopenable,
)
from tfm_core.data.opened_task import tokenizer_path
from tfm_core.data.user_data import sets
from tfm_core.disk import sync_file
from tfm_core.export.archive import Archive
from tfm_core.export.exports import Progress
from tfm_core.export.first_look import first_look
from tfm_core.export.opened_as import configuration_of, notes_of
from tfm_core.pretrained import heads
from tfm_core.pretrained.adapter import CHECKPOINT
from tfm_core.pretrained.model import CheckedFolder, check_folder, parameters_of
from tfm_core.reading import is_line
from tfm_core.runs import snapshots
from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status
from tfm_core.runs.store import RunStore
from tfm_core.sentences import N_, Paragraph, Sentence, in_bytes, joined
from tfm_core.training.checkpoints import FILE, MODEL

_FACTS = {"step": 0, "seconds": 0.0, "scaler": {}}
"""Of a checkpoint that nothing here has trained."""


def open_run(
    path: Path,
    store: RunStore,
    *,
    name: str | None = None,
    owner: str | None = None,
    owner_name: str | None = None,
    most: int = MAX_BYTES,
    progress: Progress | None = None,
) -> Run:
    """Open a folder as a run of ``owner``. most: bytes of its weights.

    name: of the run; by default the folder's. Raises ValueError, in a sentence, with no run made.
    """
    say = progress or (lambda share, words: None)
    say(0.0, N_("Checking the folder"))
    checked = check_folder(path, most=most)
    called = name or _name_of(checked.folder)
    opened = configuration_of(checked, called)
    experiment, tokenizer = opened.experiment, opened.tokenizer
    _check_room(checked, store)

    def fill(folder: Path) -> None:
        if tokenizer is not None:
            path = tokenizer_path(folder, tokenizer.digest)
            path.parent.mkdir(parents=True)
            write_bytes(path, tokenizer.content, lasting=True)
        target = folder / "checkpoints" / "last" / FILE
        target.parent.mkdir(parents=True)
        _write_weights(checked, target, lambda share: say(0.8 * share, N_("Reading the weights")))
        if checked.head:
            tensors = {name: checked.folder.read(one) for name, one in checked.head.items()}
            save_file(tensors, folder / heads.FILE)
        say(0.8, N_("Reading the first examples"))
        run = Run(folder)
        probe, snapshot = first_look(run)
        snapshots.write_probe(folder, probe)
        snapshots.write_snapshot(folder, snapshot)
        run.snapshot(0)

    with sets.below(store.root):
        run = store.bring(
            experiment,
            Status("opened"),
            fill,
            name=called,
            owner=owner,
            owner_name=owner_name,
        )
    say(1.0, N_("Done."))
    return run


@contextmanager
def unzipped(path: Path) -> Iterator[Path]:
    """Yield the folder in a zip as one on the disk. Raises ValueError and OSError."""
    with path.open("rb") as file, tempfile.TemporaryDirectory() as place:
        archive = Archive(file, most=MAX_BYTES, marked_by=CONFIG)
        if CONFIG not in archive:
            raise Unopenable(
                "This zip has no {name}, so it is not a Hugging Face folder. An exported run: "
                "python -m tfm_core import FILE",
                name=CONFIG,
            )
        for one in archive.names:
            if "/" not in one and one.endswith(SUFFIXES):
                (Path(place) / one).write_bytes(archive.read(one, most=MAX_BYTES))
        yield Path(place)


def _name_of(folder: Folder) -> str:
    """Return what a folder is called: where that is “model” or a checkpoint, whose it is, too."""
    path = folder.opened.resolve()
    is_checkpoint = CHECKPOINT.fullmatch(path.name) is not None
    if not is_checkpoint and path.name != "model":
        return path.name
    source = folder.config.get("_name_or_path")
    given = source.replace("\\", "/").rstrip("/").rpartition("/")[2] if is_line(source, 200) else ""
    if is_checkpoint:
        return ", ".join([path.parent.name or given, path.name])
    return given or path.parent.name or path.name


def size_of(path: Path, *, most: int = MAX_BYTES) -> Sentence:
    """Return what a folder holds and how much it takes, with no weight loaded. Raises Unopenable.

    most: bytes of its weights.
    """
    checked = check_folder(path, most=most)
    notes: list[str] = list(notes_of(checked))
    folder = checked.folder
    if folder.changes:
        notes.insert(
            0,
            N_(
                "The adapter “{name}” is merged into its base “{base}”.",
                name=folder.opened.name,
                base=folder.path.name,
            ),
        )
    elif folder.opened != path.expanduser():
        notes.insert(0, N_("This opens the newest checkpoint, {name}.", name=folder.path.name))
    size = N_(
        "{label} with {n:,} parameters: {size} in memory and on disk.",
        label=checked.family.label,
        n=checked.n_parameters,
        size=in_bytes(checked.n_bytes),
    )
    return joined(size, *notes)


def _check_room(checked: CheckedFolder, store: RunStore) -> None:
    folder = next(one for one in (store.root, *store.root.parents) if one.is_dir())
    free = shutil.disk_usage(folder).free
    if checked.n_bytes > free:
        raise Unopenable(
            Paragraph("pretrained/no-room", size=in_bytes(checked.n_bytes), free=in_bytes(free))
        )


def _write_weights(checked: CheckedFolder, path: Path, say: Callable[[float], None]) -> None:
    """Write a checkpoint, one tensor after the other. Raises Unopenable and OSError.

    The format: the length of a header, the header in JSON, the numbers of all tensors.
    """
    shapes = {f"{MODEL}{name}": tuple(shape) for name, shape in checked.shapes.items()}
    header: dict[str, Any] = {"__metadata__": {"trainer": json.dumps(_FACTS)}}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * torch.Size(shape).numel()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, end]}
    content = json.dumps(header, separators=(",", ":")).encode()
    content += b" " * (-len(content) % 8)
    with path.open("xb") as file:
        file.write(len(content).to_bytes(8, "little") + content)
        done = 0
        for _name, values in parameters_of(checked):
            file.write(values.numpy().data.cast("B"))
            done += values.numel()
            say(done / checked.n_parameters)
    sync_file(path)
