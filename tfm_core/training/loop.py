"""The training loop: a generator of events. The caller owns time, files and processes.

Pausing is not calling ``next``, stopping is ``close()``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from tfm_core.models.build import Model
from tfm_core.training.compiling import begin_step, compile_model
from tfm_core.training.devices import memory_used
from tfm_core.training.events import (
    Event,
    Finished,
    Measured,
    SnapshotDue,
    Split,
    Started,
    Step,
    Turned,
    Weights,
)
from tfm_core.training.objectives import StepMetrics, TextObjective
from tfm_core.training.optimisation import gradient_norms
from tfm_core.training.progress import (
    LOSS_DIVERGED,
    VALIDATIONS,
    TrainingDiverged,
    snapshot_schedule,
)
from tfm_core.training.setup import to_floats
from tfm_core.training.trainer import BestWeights, Trainer, build, seeds_of_step

__all__ = ["Trainer", "build", "seeds_of_step", "train", "update"]

MAX_NONFINITE_STEPS = 16
"""Steps in a row that may overflow fp16: the loss is scaled by 2^16 at first."""

_MEMORY_EVERY = 50  # steps between two readings of the memory in use


def train(trainer: Trainer) -> Iterator[Event]:
    """Train from ``trainer.step`` to the end; see tfm_core.training.events for the order of events.

    Raises TrainingDiverged when the loss is no longer a number.
    """
    config = trainer.experiment.trained
    schedule, descent = snapshot_schedule(config.steps, config.snapshots), trainer.descent
    yield _started(trainer)
    if config.compile:
        yield compile_model(trainer)
    if trainer.step == 0:
        yield SnapshotDue(0, keeps_weights=True)
        yield from _validated(trainer)
    trainer.follow_turns(trainer.step)
    memory, per_example = memory_used(trainer.device), 0.0
    while trainer.step < config.steps and not trainer.patience.is_over:
        yield from _turned(trainer)
        begin = trainer.clock()
        loss, accuracy, rate, norm, balance = update(trainer)
        trainer.step += 1
        step = trainer.step
        took = trainer.clock() - begin
        trainer.seconds += took
        took /= trainer.batches.size_of(step)
        per_example = took if not per_example else 0.9 * per_example + 0.1 * took
        if math.isfinite(loss):
            descent.update(loss)
        is_regular = step % config.validate_every == 0 or step == config.steps
        is_validated = is_regular or descent.passes(VALIDATIONS)
        gradients: dict[str, float] = {}
        if is_validated or step == 1:
            gradients = gradient_norms(trainer.model, norm, config.clip_norm or None)
        if is_validated:
            measured = _validated(trainer)
            _update_best(trainer, measured[-1].loss, counts=is_regular)
            yield from measured
        if trainer.patience.is_over or schedule.is_due(step, descent):
            keeps_weights = trainer.patience.is_over or schedule.keeps_weights(step, descent)
            yield SnapshotDue(step, keeps_weights)
        if step % _MEMORY_EVERY == 0:
            memory = memory_used(trainer.device)
        pace = 1 / per_example
        yield Step(
            step, trainer.epoch, loss, accuracy, rate, norm, pace, memory, gradients, balance
        )
    if config.final_test:
        yield _tested(trainer)
    reason = trainer.patience.reason(step=trainer.step, total=config.steps)
    yield Finished(trainer.step, trainer.seconds, reason, trainer.patience.best_step)


def _update_best(trainer: Trainer, loss: float, *, counts: bool) -> None:
    """Give patience the validation loss of a step, and keep its weights if they are the best."""
    trainer.patience.update(trainer.step, loss, counts=counts)
    if trainer.experiment.trained.keeps_best and trainer.patience.best_step == trainer.step:
        trainer.best = BestWeights(trainer.step, _weights(trainer.eval_model))


def _turned(trainer: Trainer) -> list[Turned]:
    """Give the settings that were turned their values; return the events that tell it."""
    return [
        Turned(turn.step, turn.setting, turn.value)
        for turn in trainer.follow_turns(trainer.step + 1)
    ]


def update(trainer: Trainer) -> tuple[float, float, float, float, float | None]:
    """Learn from the next batch; return loss, accuracy, learning rate, gradient norm and balance.

    The balance is that of a model's experts, None without any.
    """
    config, step = trainer.settings, trainer.step + 1
    model, optimizer, scaler = trainer.model, trainer.optimizer, trainer.scaler
    rate = config.rate(step)
    for group in optimizer.param_groups:
        group["lr"] = rate
    dropout, _drawn = seeds_of_step(trainer.experiment, step)
    if trainer.dropout:
        torch.manual_seed(dropout)
    if not model.training:
        model.train()
    optimizer.zero_grad(set_to_none=True)  # before CUDA graphs write there again
    metrics = _step_metrics(trainer)
    scaler.scale(metrics.loss).backward()  # type: ignore[no-untyped-call]
    scaler.unscale_(optimizer)
    limit = config.clip_norm or math.inf
    norm = nn.utils.clip_grad_norm_(trainer.parameters, limit)
    scaler.step(optimizer)
    scaler.update()
    if trainer.average is not None:
        trainer.average.update()
    told = (metrics.reported, norm, metrics.n_correct, metrics.n_tokens)
    loss, length, n_correct, n_tokens, *balance = to_floats(
        *told, *(() if metrics.balance is None else (metrics.balance,))
    )
    _check(trainer, loss)
    return loss, n_correct / max(1.0, n_tokens), rate, length, balance[0] if balance else None


def _step_metrics(trainer: Trainer) -> StepMetrics:
    """Return the loss of the next batch, to be differentiated, and its counts."""
    batch = trainer.batch(trainer.step + 1)
    learning: nn.Module = trainer.model
    if trainer.compiled is not None:
        begin_step()
        learning = trainer.compiled
    with trainer.autocast():
        return trainer.objective.learn(learning, batch)


def _check(trainer: Trainer, loss: float) -> None:
    """Raise TrainingDiverged where the loss of a step is no longer a number.

    With a scaled loss (fp16) such a step changed nothing, and the scale is halved: it is the end
    only where that has not helped.
    """
    trainer.n_nonfinite = 0 if math.isfinite(loss) else trainer.n_nonfinite + 1
    if trainer.n_nonfinite > (MAX_NONFINITE_STEPS if trainer.scaler.is_enabled() else 0):
        from tfm_core.facts.learning_rate import calmer_rate  # reads every preset

        raise TrainingDiverged(
            LOSS_DIVERGED,
            loss=loss,
            step=trainer.step + 1,
            learning_rate=trainer.experiment.trained.learning_rate,
            lower=calmer_rate(trainer.experiment),
        )


def _started(trainer: Trainer) -> Started:
    objective = trainer.objective
    return Started(
        step=trainer.step,
        total_steps=trainer.experiment.trained.steps,
        steps_per_epoch=trainer.steps_per_epoch,
        n_parameters=trainer.n_parameters,
        device=str(trainer.device),
        chance=1 / objective.n_classes,
        start_loss=math.log(objective.n_classes),
        floor=objective.loss_lower_bound(),
        ceiling=objective.accuracy_upper_bound() if isinstance(objective, TextObjective) else None,
        reads_per_epoch=objective.reads_per_epoch,
        remark=trainer.remark,
    )


def _validated(trainer: Trainer) -> list[Measured]:
    """Measure the last weights and, where there is one, their average: those that count come last.

    Before the first step both are the same, and measured once.
    """
    last = _measured(trainer, "validation", "last")
    if trainer.average is None:
        return [last]
    if not trainer.average.n_updates:
        return [last, replace(last, weights="average")]
    return [last, _measured(trainer, "validation", "average")]


def _measured(trainer: Trainer, split: Split, weights: Weights) -> Measured:
    begin = trainer.clock()
    model = (trainer.model if weights == "last" else trainer.eval_model).eval()
    with torch.inference_mode(), trainer.autocast():
        loss, accuracy, exact = trainer.objective.measure(model, split)
    trainer.seconds += trainer.clock() - begin
    return Measured(trainer.step, split, loss, accuracy, exact, weights)


def _tested(trainer: Trainer) -> Measured:
    """Measure the weights that count on the test split; the trainer stays as it is."""
    best, model = trainer.best, trainer.eval_model
    weights: Weights = "last" if trainer.average is None else "average"
    if best is None or best.step == trainer.step:
        return _measured(trainer, "test", weights)
    last = _weights(model)
    model.load_state_dict(best.weights)
    try:
        return replace(_measured(trainer, "test", weights), step=best.step)
    finally:
        model.load_state_dict(last)


def _weights(model: Model) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
