import json

import pytest

from tfm_core.runs import Run, RunStore
from tfm_core.runs.status import Status, write_status


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path / "data"))
    return RunStore(tmp_path / "runs", recorded=tmp_path / "recorded")


@pytest.fixture
def end():
    """Make a run look ended: its state, and an events file."""

    def end(run: Run, state="stopped", step=5, **facts) -> Run:
        write_status(run.folder, Status(state, step=step, total_steps=7, **facts))
        line = json.dumps({"event": "step", "step": step, "loss": 0.5})
        (run.folder / "events.jsonl").write_text(line + "\n")
        last = run.folder / "checkpoints" / "last"
        last.mkdir(parents=True, exist_ok=True)
        (last / "checkpoint.safetensors").write_bytes(b"weights")
        return run

    return end
