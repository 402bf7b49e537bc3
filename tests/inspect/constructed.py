"""Runs with snapshots made of drawn numbers: what a page needs, without training anything."""

from dataclasses import replace

import numpy as np

from tests.probe.expected_masks import expected_masks
from tfm_core.choices.config import Experiment
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.types import Snapshot
from tfm_core.runs.process.identity import process_id
from tfm_core.runs.run import Run
from tfm_core.runs.snapshots import write_probe, write_snapshot
from tfm_core.runs.status import Status, write_status
from tfm_core.runs.store import RunStore

STEPS = (0, 2, 11)
PAIRS = (  # of different lengths, so that padding has something to hide
    (("three", "two"), ("3", "2")),
    (("a", "b", "c", "d", "e"), ("e", "d", "c")),
    (("one",), ("1", "7", "5")),
)


def text_experiment(family: str = "encoder-decoder", **model: object) -> Experiment:
    layers = (
        {"n_encoder_layers": 2, "n_decoder_layers": 3}
        if family == "encoder-decoder"
        else {"n_layers": 2}
    )
    heads = {} if family == "recurrent" else {"n_heads": 3}
    values = {"family": family, "d_model": 12, **heads, **layers, **model}
    return Experiment.parse(
        {"model": values, "task": {"kind": "text", "name": "numbers", "size": 4}}
    )


def vit_experiment(pooling: str = "mean") -> Experiment:
    model = {"family": "vit", "d_model": 12, "n_heads": 3, "n_layers": 2, "pooling": pooling}
    return Experiment.parse({"model": model, "task": {"kind": "image", "name": "mnist-5000"}})


def small(experiment: Experiment) -> Experiment:
    """Return an experiment that is over in a moment: three steps, and few pairs to make."""
    task = experiment.task
    sizes = {"n_train": 37, "n_validation": 8, "n_test": 8} if task.kind == "text" else {}
    return experiment.replace(
        task=task.replace(**sizes).model_dump(),
        training=experiment.training.replace(steps=3, batch_size=8).model_dump(),
    )


def items_of_text() -> list[dict[str, object]]:
    return [
        {
            "src": list(src),
            "tgt": list(tgt),
            "alignment": [[] for _ in tgt],
            "src_text": " ".join(src),
            "tgt_text": "".join(tgt),
        }
        for src, tgt in PAIRS
    ]


def constructed_run(
    store: RunStore,
    experiment: Experiment,
    *,
    state: str = "finished",
    steps: tuple[int, ...] = STEPS,
) -> Run:
    """Return a run with a probe of 3 examples and a snapshot at each step."""
    run = store.create(experiment, name="Constructed")
    write_state(run, state, steps[-1] if steps else 0)
    rng = np.random.default_rng(7)
    if experiment.task.kind == "image":
        items = [{"label": label} for label in (4, 0, 9)]
        images = rng.integers(0, 256, (3, 1, 28, 28), dtype=np.uint8)
        write_probe(run.folder, {"kind": "image", "items": items, "images": images})
    else:
        items = items_of_text()
        write_probe(run.folder, {"kind": "text", "items": items})
    for step in steps:
        write_snapshot(run.folder, constructed_snapshot(experiment, items, step))
    return run


def write_state(run: Run, state: str, step: int = 0) -> None:
    """Say in the run's folder that this process works on it, or did."""
    mark = process_id()
    total = run.experiment.training.steps
    status = Status(state, step=step, total_steps=total)
    status = replace(status, pid=mark.pid, host=mark.host, created=mark.created)
    write_status(run.folder, status)


def drawn_attention(
    experiment: Experiment, items: list, rng: np.random.Generator, power: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return random maps of every module, sharper with a higher power, and their masks."""
    attention, kept = {}, {}
    for name in [name for names in modules_by_kind(experiment).values() for name in names]:
        kept[name] = expected_masks(experiment, items, name)[:, None]
        shape = (len(items), experiment.model.n_heads, *kept[name].shape[2:])
        weights = rng.random(shape) ** power * kept[name]
        total = weights.sum(-1, keepdims=True)
        attention[name] = (weights / np.where(total, total, 1)).astype(np.float16)
    return attention, kept


def constructed_snapshot(experiment: Experiment, items: list, step: int) -> Snapshot:
    """Return a snapshot whose rows sum to 1 where the model may attend; the rest is padding."""
    rng = np.random.default_rng(step)
    attention, kept = drawn_attention(experiment, items, rng, 1 + step)
    if experiment.task.kind == "image":
        shares = rng.random((len(items), 10))
        shares /= shares.sum(1, keepdims=True)
        return Snapshot(step, attention, shares, masks=kept)
    tokens = [list(item["tgt"]) for item in items]
    if step != STEPS[-1]:
        tokens[0] = ["9"]
    return Snapshot(
        step,
        attention,
        confidence=rng.random((len(items), 4)).astype(np.float16),
        tokens=tokens,
        texts=["".join(row) for row in tokens],
        masks=kept,
    )
