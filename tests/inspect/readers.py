"""Runs of encoder-only models that read: a few steps of training, and a checkpoint."""

from functools import cache

from tests.training.test_loop import experiment
from tfm_core.choices.config import Experiment
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.training import checkpoints, loop

STEPS = 40
MODEL = {"d_model": 32, "n_heads": 4, "d_ff": 32, "position": "rotary"}


def reader(task: str, pooling: str = "mean") -> Experiment:
    """An experiment that learns a little within two seconds."""
    return experiment(
        "encoder-only",
        task,
        model={**MODEL, "pooling": pooling},
        task={"n_train": 1000, "n_validation": 50, "n_test": 50},
        training={"steps": STEPS, "batch_size": 32, "learning_rate": 0.01, "validate_every": STEPS},
    )


@cache
def trained(chosen: Experiment) -> loop.Trainer:
    """Train once for all tests."""
    trainer = loop.build(chosen)
    for _event in loop.train(trainer):
        pass
    return trainer


def reading_run(store: RunStore, task: str, pooling: str = "mean") -> Run:
    """A finished run in a store, with the weights of the trained model."""
    chosen = reader(task, pooling)
    run = store.create(chosen, name=f"Reads {task}", state="finished")
    checkpoints.save(trained(chosen), run.folder / "checkpoints" / "last")
    return run
