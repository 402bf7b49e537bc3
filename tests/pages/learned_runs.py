"""Runs that have learned something, with curves, probe and snapshots, without any training."""

import json
import math

import numpy as np

from tests.inspect.constructed import drawn_attention
from tests.pages.made_runs import made_run
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.probe.types import Snapshot
from tfm_core.runs.run import Run
from tfm_core.runs.snapshots import write_probe, write_snapshot
from tfm_core.runs.status import State
from tfm_core.runs.store import RunStore

WORDS = ("red", "blue", "green", "<b>bold</b>", "grey")


def learned_run(
    store: RunStore,
    preset: str = "reverse",
    *,
    state: State = "finished",
    step: int = 211,
    reason: str | None = None,
) -> Run:
    """A run of a preset that did ``step`` steps, with two snapshots: at 1 and at the last step."""
    experiment = PRESETS[preset].experiment
    name = f"A run of {preset}"
    run = made_run(store, state=state, step=step, name=name, experiment=experiment, reason=reason)
    total = run.status.total_steps
    records = _records(experiment, step, total, is_over=state == "finished")
    text = "".join(json.dumps(record) + "\n" for record in records)
    (run.folder / "events.jsonl").write_text(text, encoding="utf-8")
    look = _look_at_pictures if preset.startswith("vit") else _look_at_text
    look(run, experiment, (1, step))
    return run


def _records(experiment: Experiment, step: int, total: int, *, is_over: bool) -> list[dict]:
    text = experiment.task.kind == "text"
    n_classes = 30 if text else 10
    first = math.log(n_classes)
    records: list[dict] = [
        {
            "event": "started",
            "step": 0,
            "total_steps": total,
            "steps_per_epoch": 31,
            "n_parameters": 72_394,
            "device": "cpu",
            "chance": 1 / n_classes,
            "start_loss": first,
            "floor": 0.0,
        }
    ]
    noise = np.random.default_rng(5).normal(1, 0.12, step + 1)
    for k in range(1, step + 1):
        left = math.exp(-5 * k / step)
        right = 1 - (1 - 1 / n_classes) * left
        records.append(
            {
                "event": "step",
                "step": k,
                "epoch": k / 31,
                "loss": first * left * float(noise[k]),
                "accuracy": min(1.0, right * float(noise[k]) ** 0.3),
                "learning_rate": 0.004 * (1 - k / (step + 1)),
                "grad_norm": 0.7 * float(noise[k]),
                "examples_per_second": 2100.0,
                "memory_bytes": 3 * 10**8,
            }
        )
        if k % (step // 7) == 0 or k == step:
            records.append(_measured(k, "validation", first * left, right, text=text))
    if is_over:
        records.append(_measured(step, "test", first * math.exp(-5), 0.991, text=text))
        records.append({"event": "finished", "step": step, "seconds": 61.0})
    return records


def _measured(step: int, split: str, loss: float, right: float, *, text: bool) -> dict:
    whole = right**4 if text else None
    return {
        "event": "measured",
        "step": step,
        "split": split,
        "loss": loss,
        "accuracy": right,
        "sequence_accuracy": whole,
    }


def _look_at_text(run: Run, experiment: Experiment, steps: tuple[int, ...]) -> None:
    items = []
    for index in range(3):
        src = [*WORDS[index:], *WORDS[:index]]
        tgt = src[::-1][: experiment.task.max_tgt_len]
        item = {
            "src": src,
            "tgt": tgt,
            "alignment": [[4 - t] for t in range(len(tgt))],
            "src_text": " ".join(src),
            "tgt_text": " ".join(tgt),
        }
        if experiment.task.kind == "corpus":
            item |= {"src": [], "alignment": [[] for _ in tgt], "prompt": 2}
        items.append(item)
    write_probe(run.folder, {"kind": "text", "items": items})
    for step in steps:
        is_last = step == steps[-1]
        tokens = [
            item["tgt"] if is_last else item["src_text"].split()[: 3 + n]
            for n, item in enumerate(items)
        ]
        if is_last:
            tokens[1] = [*tokens[1][:2], "red", *tokens[1][3:]]
        attention, masks = drawn_attention(experiment, items, np.random.default_rng(3), 4)
        write_snapshot(
            run.folder,
            Snapshot(
                step,
                attention,
                masks=masks,
                ids=np.ones((3, 7), np.int32),
                confidence=np.full((3, 7), 0.83, np.float16),
                tokens=[list(row) for row in tokens],
                texts=[" ".join(row) for row in tokens],
            ),
        )


def _look_at_pictures(run: Run, experiment: Experiment, steps: tuple[int, ...]) -> None:
    generator = np.random.default_rng(7)
    rows, columns = np.mgrid[:28, :28]
    images = np.zeros((7, 1, 28, 28), np.uint8)
    for n in range(7):
        ring = np.abs(np.hypot(rows - 14, columns - 11 - n) - 8) < 2
        images[n, 0][ring] = 255
    items = [{"label": n} for n in range(7)]
    write_probe(run.folder, {"kind": "image", "items": items, "images": images})
    for step in steps:
        scores = generator.random((7, 10)) * 0.1
        if step == steps[-1]:
            scores[np.arange(7), np.arange(7)] += 1
            scores[3, 8] += 1.2  # one is wrong
        scores /= scores.sum(1, keepdims=True)
        attention, masks = drawn_attention(experiment, items, np.random.default_rng(3), 4)
        write_snapshot(
            run.folder, Snapshot(step, attention, scores.astype(np.float16), masks=masks)
        )
