"""Runs to take away: of every kind, small, and trained for a few steps or not at all."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from safetensors.numpy import load_file

from tfm_core.choices.config import ConfigError, Experiment
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status, write_status
from tfm_core.runs.store import RunStore

SIZES = {"n_train": 40, "n_validation": 11, "n_test": 13}


def small(experiment: Experiment, **training: object) -> Experiment:
    """The same kind of model and task, small, for a training of three steps."""
    values = experiment.model_dump()
    task, model = values["task"], values["model"]
    if task["kind"] == "image":
        task |= {"name": "mnist-5000", "n_validation": 50}
    else:
        task |= {name: size for name, size in SIZES.items() if name in task}
    model["d_model"] = 16
    model |= {name: 1 for name in model if name.startswith("n_") and name.endswith("layers")}
    model |= {"n_heads": 2} if "n_heads" in model else {}
    model |= {"d_ff": 16} if "d_ff" in model else {}
    values["training"] |= {
        "steps": 3,
        "batch_size": 5,
        "validate_every": 2,
        "snapshots": 3,
    } | training
    return Experiment.parse(values)


def untrained(store: RunStore, experiment: Experiment) -> Run:
    """A run that stopped at its first step: weights, but no steps."""
    from tfm_core.training import checkpoints
    from tfm_core.training.loop import build

    run = store.create(experiment, state="stopped")
    checkpoints.save(build(experiment), run.folder / "checkpoints" / "last")
    total = experiment.training.steps
    write_status(run.folder, Status("stopped", total_steps=total, reason="Enough."))
    line = {"event": "started", "step": 0, "total_steps": total, "chance": 0.25}
    (run.folder / "events.jsonl").write_text(json.dumps(line) + "\n")
    return run


def is_valid(values: Mapping[str, object]) -> bool:
    try:
        Experiment.parse(values)
    except ConfigError:
        return False
    return True


def unpacked(content: bytes, folder: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        file.extractall(folder)
    return folder


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(parts: Mapping[str, bytes | str]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return target.getvalue()


def tensors(run: Run, which: str = "last"):
    return load_file(run.folder / "checkpoints" / which / "checkpoint.safetensors")


def assert_same_run(one: Run, two: Run) -> None:
    """Experiment, weights with the optimiser's state, curves, and all that was looked at."""
    assert one.experiment == two.experiment
    assert one.reader().read() == two.reader().read()
    assert one.has_checkpoint == two.has_checkpoint
    assert one.checkpoint_step == two.checkpoint_step
    if one.has_checkpoint:
        left, right = tensors(one), tensors(two)
        assert left.keys() == right.keys()
        assert all((left[name] == right[name]).all() for name in left)
    assert one.snapshot_steps() == two.snapshot_steps()
    assert one.weight_steps() == two.weight_steps()
    for step in one.snapshot_steps():
        left, right = one.snapshot(step), two.snapshot(step)
        assert left.texts == right.texts
        assert left.attention.keys() == right.attention.keys()
        assert all((left.attention[k] == right.attention[k]).all() for k in left.attention)
    for name in ("step", "total_steps", "epoch", "seconds"):
        assert getattr(one.status, name) == getattr(two.status, name)
