"""Whether two runs are the same, bit for bit, but for the time that they took."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors import safe_open

from tfm_core.runs.disk.atomic import read_json
from tfm_core.runs.run import Run

_TIMES = {"examples_per_second", "memory_bytes", "seconds", "cpu_seconds"}


def contents(run: Run) -> dict[str, Any]:
    """Return all that a run came to: state, weights, optimiser, events, probe, snapshots, best."""
    status = run.status
    found: dict[str, Any] = {
        "status": (status.state, status.step, status.total_steps),
        "problem": run.problem,
        "events": _events(run),
        "best.json": read_json(run.folder / "best.json"),
        "probe.json": read_json(run.folder / "probe.json"),
        "steps": run.snapshot_steps(),
    }
    parts = [run.folder / "probe.safetensors", *run.folder.glob("snapshots/*.safetensors")]
    for path in (*parts, *run.folder.glob("checkpoints/*/checkpoint.safetensors")):
        if path.exists():
            found[str(path.relative_to(run.folder))] = tensors(path)
    return found


def leftovers(folder: Path) -> list[str]:
    """Return the names of files that were never given their own."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.name.startswith(".") or path.name.endswith(".new")
    )


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return what two runs differ in."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def tensors(path: Path) -> dict[str, str]:
    """Return what a safetensors file holds: a digest a tensor, and its facts without times."""
    with safe_open(path, framework="numpy") as file:
        facts = dict(file.metadata() or {})
        found = {
            name: f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
            for name in file.keys()  # noqa: SIM118
            for value in [file.get_tensor(name)]
        }
    if "trainer" in facts:
        trainer = json.loads(facts["trainer"])
        facts["trainer"] = json.dumps({k: v for k, v in trainer.items() if k not in _TIMES})
    return found | {f"metadata {name}": value for name, value in facts.items()}


def _events(run: Run) -> list[dict[str, Any]]:
    """Return what the events say once nothing more is to be forgotten, without times."""
    kept: list[dict[str, Any]] = []
    for record in run.reader().read():
        if record["event"] == "resumed":
            kept = [old for old in kept if old["step"] <= record["step"]]
        elif record["event"] != "started":
            told = {key: value for key, value in record.items() if key not in _TIMES}
            if told not in kept:  # the end is told again where it came just before the kill
                kept.append(told)
    return kept
