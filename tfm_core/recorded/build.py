"""Train the recorded runs anew: ``python -m tfm_core.recorded.build`` (about two minutes).

They are ordinary runs of the presets with fewer snapshots and shorter numbers in their events, so
that they stay small. Of the checkpoints only the last is kept, its optimiser's moments in bfloat16:
training further starts from exactly these weights.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tfm_core.presets import PRESETS
from tfm_core.runs.execute import execute
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.training.checkpoints import FILE

RECORDINGS = {
    "recorded-digits": ("vit-digits", "Digits, recorded"),
    "recorded-korean": ("translate", "English to Korean, recorded"),
}
SNAPSHOTS = 12
DIGITS = 6  # significant ones of the numbers in the events
_KEPT = ("experiment.json", "meta.json", "status.json", "events.jsonl", "best.json", "probe.json",
         "probe.safetensors", "snapshots", "checkpoints")  # fmt: skip


def main() -> None:
    """Train each recording and put it in its place."""
    for run_id, (preset, name) in RECORDINGS.items():
        with tempfile.TemporaryDirectory() as folder:
            record(Path(folder), preset, name, RECORDED / run_id)
        size = sum(path.stat().st_size for path in (RECORDED / run_id).rglob("*"))
        print(f"{run_id}: {size / 1e6:.2f} MB")


def record(workplace: Path, preset: str, name: str, target: Path) -> None:
    """Train a preset in ``workplace`` and copy what readers need to ``target``."""
    experiment = PRESETS[preset].experiment
    training = experiment.training.replace(snapshots=SNAPSHOTS)
    run = RunStore(workplace, recorded=None).create(
        experiment.replace(training=training.model_dump()), name=name, preset=preset
    )
    status = execute(run)
    if status.state != "finished":
        raise RuntimeError(f"The recording {name} ended as {status.state}: {status.reason}")
    shutil.rmtree(run.folder / "checkpoints" / "best", ignore_errors=True)
    _halve_moments(run.folder / "checkpoints" / "last" / FILE)
    shorten(run.folder / "events.jsonl")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for part in _KEPT:
        source = run.folder / part
        if source.is_dir():
            shutil.copytree(source, target / part)
        elif source.exists():
            shutil.copyfile(source, target / part)


def shorten(path: Path) -> None:
    """Round the numbers of an events file to ``DIGITS`` significant digits; whole ones stay."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for record in records:
        for name, value in record.items():
            if isinstance(value, float):
                record[name] = float(f"{value:.{DIGITS}g}")
    text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    path.write_text(text, encoding="utf-8")


def _halve_moments(path: Path) -> None:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, value in tensors.items():
        if name.startswith("optimizer/") and value.ndim:
            tensors[name] = value.to(torch.bfloat16)
    save_file(tensors, path, metadata)


if __name__ == "__main__":
    main()
