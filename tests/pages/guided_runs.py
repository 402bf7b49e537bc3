"""Guided runs with real weights of a few steps, as if they had been trained to their end."""

import dataclasses
import json

from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RunStore
from tfm_core.studies.practice import STUDY
from tfm_core.training import checkpoints
from tfm_core.training.events import Measured, Step, to_record
from tfm_core.training.loop import build, train

TURN = (2.0, 1.2, 0.9, 1.1, 1.2, 1.3)  # validation losses: the third is the lowest


def guided_run(store: RunStore, kind: str, *, steps: int = 3, lower: float = 0.0) -> Run:
    """A finished run whose curve overfits; its best weights are those after ``steps`` steps."""
    experiment = STUDY.experiment(STUDY.arm(kind))
    run = store.create(experiment, name=f"Practice: {kind}")
    trainer = build(experiment)
    records = []
    for event in train(trainer):
        if isinstance(event, Step):
            records.append(to_record(event))
            if event.step == steps:
                break
    for name in ("best", "last"):
        checkpoints.save(trainer, run.folder / "checkpoints" / name)
    end = len(TURN) * experiment.training.validate_every
    for k in range(steps + 1, end + 1):
        loss = 2.0 * 0.99**k
        record = {**records[-1], "step": k, "loss": loss, "accuracy": 1 - loss / 2.5}
        records.append(record)
    measured = [
        to_record(Measured(50 * (n + 1), "validation", loss - lower, 1 - loss / 2.5, None))
        for n, loss in enumerate(TURN)
    ]
    lines = sorted([*records, *measured], key=lambda record: record["step"])
    lines.insert(0, {"event": "started", "step": 0, "total_steps": end, "start_loss": 2.3})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder / "events.jsonl").write_text(text, encoding="utf-8")
    done = dataclasses.replace(
        run.status, state="finished", step=end, total_steps=experiment.training.steps, seconds=9.0
    )
    write_status(run.folder, done)
    return run
