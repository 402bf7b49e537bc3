"""Open a Hugging Face folder as a run: weights, tokenizer, a probe and one snapshot.

The folder is untrusted. Everything is checked before the run appears; where something is wrong,
nothing of it stays. Weights are converted tensor by tensor, so that the model is in memory once.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from tfm_core.config.pretrained_tasks import MAX_NAME
from tfm_core.data.own import place
from tfm_core.disk import sync_file
from tfm_core.export.exports import Progress
from tfm_core.export.first_look import first_look
from tfm_core.export.opened_as import notes_of, what_opens
from tfm_core.pretrained.folder import CONFIG, MAX_BYTES, Unopenable
from tfm_core.pretrained.model import Checked, check_folder, parameters_of
from tfm_core.pretrained.task import tokenizer_path
from tfm_core.reading import is_line
from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.runs.record import snapshots
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status
from tfm_core.runs.store import RunStore
from tfm_core.sentences import N_, Paragraph, Sentence, in_bytes, joined
from tfm_core.training.checkpoints import FILE, MODEL

_FACTS = {"step": 0, "seconds": 0.0, "scaler": {}}
"""Of a checkpoint that nothing here has trained."""

_MAX_LISTED, _MAX_FILES = 200, 1000


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
    called = name or path.expanduser().resolve().name
    checked = check_folder(path, most=most)
    opened = what_opens(checked, called)
    experiment, words = opened.experiment, opened.words
    _check_room(checked, store)

    def fill(folder: Path) -> None:
        if words is not None:
            tokenizer = tokenizer_path(folder, words.digest)
            tokenizer.parent.mkdir(parents=True)
            write_bytes(tokenizer, words.content, lasting=True)
        target = folder / "checkpoints" / "last" / FILE
        target.parent.mkdir(parents=True)
        _write_weights(checked, target, lambda share: say(0.8 * share, N_("Reading the weights")))
        say(0.8, N_("Reading the first examples"))
        run = Run(folder)
        probe, snapshot = first_look(run)
        snapshots.write_probe(folder, probe)
        snapshots.write(folder, snapshot)
        run.snapshot(0)

    with place.below(store.root):
        run = store.bring(
            experiment,
            Status("opened", total_steps=experiment.training.steps),
            fill,
            name=called,
            owner=owner,
            owner_name=owner_name,
        )
    say(1.0, N_("Done."))
    return run


def folders_in(root: Path) -> dict[str, Path]:
    """Return the folders that may be opened below a host's folder, by name. Never raises.

    A link counts as what it leads to: one that leads out of the host's folder is not listed.
    """
    try:
        whole, found = root.resolve(), sorted(root.iterdir())
    except OSError:
        return {}
    return {
        path.name: path
        for path in found[:_MAX_LISTED]
        if is_line(path.name, MAX_NAME) and (path / CONFIG).is_file() and _is_within(path, whole)
    }


def _is_within(path: Path, root: Path) -> bool:
    """Return whether a folder and all that it holds lie in another one, links followed."""
    try:
        return all(
            one.resolve().is_relative_to(root)
            for one in (path, *islice(path.iterdir(), _MAX_FILES))
        )
    except (OSError, RuntimeError):  # a link that leads to itself
        return False


def size_of(path: Path, *, most: int = MAX_BYTES) -> Sentence:
    """Return what a folder holds and how much it takes, with no weight loaded. Raises Unopenable.

    most: bytes of its weights.
    """
    checked = check_folder(path, most=most)
    notes = notes_of(checked)
    size = N_(
        "{label}, {n:,} parameters: {size} in memory, and as much on the disk.",
        label=checked.family.label,
        n=checked.n_parameters,
        size=in_bytes(checked.n_bytes),
    )
    return joined(size, *notes)


def _check_room(checked: Checked, store: RunStore) -> None:
    folder = next(one for one in (store.root, *store.root.parents) if one.is_dir())
    free = shutil.disk_usage(folder).free
    if checked.n_bytes > free:
        raise Unopenable(
            Paragraph("pretrained/no-room", size=in_bytes(checked.n_bytes), free=in_bytes(free))
        )


def _write_weights(checked: Checked, path: Path, say: Callable[[float], None]) -> None:
    """Write a checkpoint, one tensor after the other. Raises Unopenable and OSError.

    The format: the length of a header, the header in JSON, the numbers of all tensors.
    """
    shapes = {f"{MODEL}{name}": tuple(shape) for name, shape in checked.shapes.items()}
    header: dict[str, Any] = {"__metadata__": {"trainer": json.dumps(_FACTS)}}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * torch.Size(shape).numel()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, end]}
    words = json.dumps(header, separators=(",", ":")).encode()
    words += b" " * (-len(words) % 8)
    with path.open("xb") as file:
        file.write(len(words).to_bytes(8, "little") + words)
        done = 0
        for _name, values in parameters_of(checked):
            file.write(values.numpy().data.cast("B"))
            done += values.numel()
            say(done / checked.n_parameters)
    sync_file(path)
