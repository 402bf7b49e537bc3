"""A training that stops at a step, and another that goes on from its checkpoint."""

from pathlib import Path

from tfm_core.choices.config import Experiment
from tfm_core.training import checkpoints
from tfm_core.training.events import Measured, Step
from tfm_core.training.loop import Trainer, build, train


def resumed_at(experiment: Experiment, step: int, folder: Path) -> Trainer:
    """Train up to ``step``, keep the last and the best weights, and load them anew."""
    stopped, resumed = build(experiment), build(experiment)
    events = train(stopped)
    while not (isinstance(event := next(events), Step) and event.step == step):
        if isinstance(event, Measured) and event.step == stopped.patience.best_step:
            checkpoints.save(stopped, folder / "best")
    checkpoints.save(stopped, folder)
    events.close()
    checkpoints.load(resumed, folder)
    if experiment.training.patience and (folder / "best").exists():
        checkpoints.load_best(resumed, folder / "best")
    return resumed
