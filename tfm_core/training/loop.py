"""The training loop: a generator of events. The caller owns time, files and processes.

Pausing is not calling ``next``, stopping is ``close()``. Everything random is drawn from the seed
and the number of the step, so a trainer that goes on from a checkpoint gives the same curve, bit
for bit on one CPU, as one that never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from tfm_core.config import Experiment
from tfm_core.data.download import Progress
from tfm_core.data.load import Data, load
from tfm_core.facts.batches import Batches
from tfm_core.facts.learning_rate import calmer_rate
from tfm_core.layers.blocks import forget_blocks
from tfm_core.models.build import Model
from tfm_core.training.autocast import autocast
from tfm_core.training.averages import AveragedWeights
from tfm_core.training.compiling import begin_step, compile_model
from tfm_core.training.descent import VALIDATIONS, Descent, looks
from tfm_core.training.devices import memory_used, resolve
from tfm_core.training.divergence import NO_NUMBER, TrainingDiverged
from tfm_core.training.events import (
    Event,
    Finished,
    Measured,
    SnapshotDue,
    Split,
    Started,
    Step,
    Weights,
)
from tfm_core.training.gradients import gradient_norms
from tfm_core.training.models import mix, new_model
from tfm_core.training.objectives import (
    ALL,
    Draw,
    Objective,
    StepMetrics,
    TextObjective,
    sent_draws,
)
from tfm_core.training.optimisation import make_optimizer
from tfm_core.training.patience import Patience
from tfm_core.training.placing import placed
from tfm_core.training.readback import read
from tfm_core.training.share import Share
from tfm_core.variants.precisions import PRECISIONS
from tfm_core.variants.tasks import TASK_KINDS

MAX_LOST = 16
"""Steps on end that may overflow fp16: the loss is scaled by 2^16 at first."""

_AHEAD_STEPS, _AHEAD_BYTES = 64, 4 * 2**20
"""Batches that are drawn together for a device that is not the CPU: so many, or about so large."""

_MEMORY_EVERY = 50  # steps between two looks at the memory in use


@dataclass(frozen=True, slots=True, eq=False)
class BestWeights:
    """The weights of the lowest validation loss so far, averaged if they are; and their step."""

    step: int
    weights: dict[str, Tensor]


@dataclass(eq=False)
class Trainer:
    """All that training has in hand. ``step`` counts the updates made so far.

    best: kept where there is patience, for the test at the end. average: of the weights over the
    steps, where the config asks for it. n_lost: steps on end whose loss was no number. share: this
    process's part, where several train together. clock: seconds that count as trained, of which
    only differences mean anything. remark: what a person should know of the data and where it lies.
    compiled: the model as torch.compile made it, to learn with; its parameters are the model's.
    """

    experiment: Experiment
    device: torch.device
    data: Data
    objective: Objective
    model: Model
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    step: int = 0
    seconds: float = 0.0
    patience: Patience = field(default_factory=Patience)
    descent: Descent = field(default_factory=Descent)
    best: BestWeights | None = None
    average: AveragedWeights[Model] | None = None
    n_lost: int = 0
    share: Share | None = None
    clock: Callable[[], float] = time.perf_counter
    remark: str | None = None
    compiled: nn.Module | None = None
    _order: tuple[int, Tensor] | None = field(default=None, repr=False)
    _ahead: dict[int, Draw] = field(default_factory=dict, repr=False)

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context in which forward passes run at the configured precision."""
        return autocast(self.experiment.training.precision, self.device)

    @property
    def answering(self) -> Model:
        """The model that counts, is looked into and tested: the average where there is one."""
        return self.model if self.average is None else self.average.model

    @property
    def batch_size(self) -> int:
        """Examples in a whole batch: the configured number, or all there are."""
        return self.batches.size

    @cached_property
    def batches(self) -> Batches:
        """How many examples each step learns from."""
        return Batches.of(self.experiment.training, self.objective.n_train)

    @property
    def steps_per_epoch(self) -> int:
        """Full batches in the training set; what is left over waits for another epoch's order."""
        return self.objective.n_train // self.batch_size

    @property
    def epoch(self) -> float:
        """How often the training set has been read."""
        return self.batches.whole(self.step) / self.steps_per_epoch

    @cached_property
    def parameters(self) -> list[nn.Parameter]:
        """The model's parameters, tied ones once."""
        return list(self.model.parameters())

    @property
    def n_parameters(self) -> int:
        """Parameters of the model, tied ones counted once."""
        return sum(parameter.numel() for parameter in self.parameters)

    def batch_indices(self, step: int) -> Tensor:
        """Return (B,): the training examples of a step, counted from 1; every epoch is shuffled."""
        begin = self.batches.whole(step - 1)
        epoch, index = divmod(int(begin), self.steps_per_epoch)
        if self._order is None or self._order[0] != epoch:
            generator = torch.Generator().manual_seed(mix(self.experiment.seed, 1, epoch))
            order = torch.randperm(self.objective.n_train, generator=generator)
            self._order = (epoch, order)
        first = index * self.batch_size + (self.batches.half if begin % 1 else 0)
        return self._order[1][first : first + self.batches.size_of(step)]

    def draw(self, step: int) -> Draw:
        """Return the batch of a step, counted from 1, its tensors on the device.

        For another device than the CPU those of some steps to come are drawn and sent with it.
        """
        if self.device.type == "cpu":
            return self._drawn(step)
        if step not in self._ahead:
            last = max(step, min(self.experiment.training.steps, step + _AHEAD_STEPS - 1))
            draws, n_bytes = [], 0
            for one in range(step, last + 1):
                draws.append(self._drawn(one))
                n_bytes += sum(tensor.nbytes for tensor in draws[-1].tensors)
                if n_bytes > _AHEAD_BYTES:
                    break
            self._ahead = dict(enumerate(sent_draws(draws, self.device), step))
        return self._ahead[step]

    def cut_to_one_length(self, is_so: bool) -> None:
        """Let all batches from the next one on be as long as the longest example, or not."""
        self.objective.has_one_length = is_so
        self._ahead.clear()

    def _drawn(self, step: int) -> Draw:
        generator = torch.Generator().manual_seed(seeds_of_step(self.experiment, step)[1])
        indices = self.batch_indices(step)
        part = ALL if self.share is None else self.share.part(len(indices))
        return self.objective.draw(indices, generator, part)


def build(experiment: Experiment, device: str = "cpu", progress: Progress | None = None) -> Trainer:
    """Make data, model and optimiser, all on the device.

    ``progress(done, total, words)`` is told of a download. Raises ValueError, in a sentence, for a
    device that is not there and for data that cannot be had.
    """
    torch_device = resolve(device)
    task, kind = experiment.task, TASK_KINDS[experiment.task.kind]
    loaded = load(task, seed=experiment.seed, progress=progress)
    data, remark = placed(loaded, experiment, torch_device)
    objective: Objective = kind.objective()(
        data,
        task,
        label_smoothing=experiment.training.label_smoothing,
        mistakes=experiment.training.mistakes,
    )
    model = new_model(experiment).to(torch_device)
    if experiment.training.checkpointing:
        forget_blocks(model)
    precision, decay = PRECISIONS[experiment.training.precision], experiment.training.ema_decay
    return Trainer(
        experiment=experiment,
        device=torch_device,
        data=data,
        objective=objective,
        model=model,
        patience=Patience(experiment.training.patience),
        descent=Descent(_lowest(objective, may_be_zero=bool(task.class_names))),
        optimizer=make_optimizer(model, experiment.training),
        scaler=torch.amp.GradScaler(torch_device.type, enabled=precision.scales_loss),
        average=AveragedWeights(model, decay) if decay else None,
        remark=remark,
    )


def train(trainer: Trainer) -> Iterator[Event]:
    """Train from ``trainer.step`` to the end; see tfm_core.training.events for the order of events.

    Raises TrainingDiverged when the loss is no longer a number.
    """
    config = trainer.experiment.training
    due, descent = looks(config.steps, config.snapshots), trainer.descent
    yield _started(trainer)
    if config.compile:
        yield compile_model(trainer)
    if trainer.step == 0:
        yield SnapshotDue(0, keeps_weights=True)
        yield from _validated(trainer)
    memory, per_example = memory_used(trainer.device), 0.0
    while trainer.step < config.steps and not trainer.patience.is_over:
        begin = trainer.clock()
        loss, accuracy, rate, norm = update(trainer)
        trainer.step += 1
        step = trainer.step
        took = trainer.clock() - begin
        trainer.seconds += took
        took /= trainer.batches.size_of(step)
        per_example = took if not per_example else 0.9 * per_example + 0.1 * took
        if math.isfinite(loss):
            descent.update(loss)
        is_regular = step % config.validate_every == 0 or step == config.steps
        gradients: dict[str, float] = {}
        if step == 1 or is_regular or descent.passes(VALIDATIONS):
            gradients = gradient_norms(trainer.model, norm, config.clip_norm or None)
        if is_regular or descent.passes(VALIDATIONS):
            measured = _validated(trainer)
            trainer.patience.update(step, measured[-1].loss, counts=is_regular)
            if config.keeps_best and trainer.patience.best_step == step:
                trainer.best = BestWeights(step, _weights(trainer.answering))
            yield from measured
        if trainer.patience.is_over or due.is_due(step, descent):
            keeps_weights = trainer.patience.is_over or due.keeps_weights(step, descent)
            yield SnapshotDue(step, keeps_weights)
        if step % _MEMORY_EVERY == 0:
            memory = memory_used(trainer.device)
        pace = 1 / per_example
        yield Step(step, trainer.epoch, loss, accuracy, rate, norm, pace, memory, gradients)
    if config.final_test:
        yield _tested(trainer)
    reason = trainer.patience.reason(step=trainer.step, total=config.steps)
    yield Finished(trainer.step, trainer.seconds, reason, trainer.patience.best_step)


def seeds_of_step(experiment: Experiment, step: int) -> tuple[int, int]:
    """Return the seed of a step's dropout, and that of what its objective draws: augmentation."""
    return mix(experiment.seed, 3, step), mix(experiment.seed, 2, step)


def update(trainer: Trainer) -> tuple[float, float, float, float]:
    """Learn from the next batch; return loss, accuracy, learning rate and gradient norm."""
    config, step = trainer.experiment.training, trainer.step + 1
    model, optimizer, scaler = trainer.model, trainer.optimizer, trainer.scaler
    rate = config.rate(step)
    for group in optimizer.param_groups:
        group["lr"] = rate
    dropout, _drawn = seeds_of_step(trainer.experiment, step)
    if trainer.experiment.model.dropout:
        torch.manual_seed(dropout if trainer.share is None else dropout + trainer.share.rank)
    if not model.training:
        model.train()
    optimizer.zero_grad(set_to_none=True)  # before CUDA graphs write there again
    learned = _learned(trainer)
    scaler.scale(learned.loss).backward()  # type: ignore[no-untyped-call]
    scaler.unscale_(optimizer)
    limit = config.clip_norm or math.inf
    norm = nn.utils.clip_grad_norm_(trainer.parameters, limit)
    scaler.step(optimizer)
    scaler.update()
    if trainer.average is not None:
        trainer.average.update()
    loss, length, n_correct, n_tokens = read(
        learned.reported, norm, learned.n_correct, learned.n_tokens
    )
    _check(trainer, loss)
    return loss, n_correct / max(1.0, n_tokens), rate, length


def _learned(trainer: Trainer) -> StepMetrics:
    """Return the loss of the next batch, to be differentiated, and its counts.

    Of a training that processes share the loss is of this one's part, and the counts are of all.
    """
    share, draw = trainer.share, trainer.draw(trainer.step + 1)
    learning: nn.Module = trainer.model if share is None else share.learning
    if trainer.compiled is not None:
        begin_step()
        learning = trainer.compiled
    with trainer.autocast():
        metrics = trainer.objective.learn(learning, draw)
    if share is None:
        return metrics
    n_learned = metrics.n_tokens if metrics.n_learned is None else metrics.n_learned
    reported, n_correct, n_tokens = share.summed(
        metrics.reported, metrics.n_correct, metrics.n_tokens
    )
    return replace(
        metrics,
        loss=share.weighted(metrics.loss, n_learned),
        n_correct=n_correct,
        n_tokens=n_tokens,
        reported_loss=reported,
    )


def _check(trainer: Trainer, loss: float) -> None:
    """Raise TrainingDiverged where the loss of a step is no longer a number.

    With a scaled loss (fp16) such a step changed nothing, and the scale is halved: it is the end
    only where that has not helped.
    """
    trainer.n_lost = 0 if math.isfinite(loss) else trainer.n_lost + 1
    if trainer.n_lost > (MAX_LOST if trainer.scaler.is_enabled() else 0):
        raise TrainingDiverged(
            NO_NUMBER,
            loss=loss,
            step=trainer.step + 1,
            learning_rate=trainer.experiment.training.learning_rate,
            lower=calmer_rate(trainer.experiment),
        )


def _lowest(objective: Objective, *, may_be_zero: bool) -> float:
    """Return the lowest loss that the targets allow; where nobody knows it, half of guessing's.

    may_be_zero: where it isn't known, it is taken to be 0, as it nearly is of pictures.
    """
    floor = objective.loss_lower_bound()
    if floor is not None:
        return floor
    return 0.0 if may_be_zero else math.log(objective.n_classes) / 2


def _started(trainer: Trainer) -> Started:
    objective = trainer.objective
    return Started(
        step=trainer.step,
        total_steps=trainer.experiment.training.steps,
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
    model = (trainer.model if weights == "last" else trainer.answering).eval()
    found: tuple[float, float, float | None] | None = None
    if trainer.share is None or trainer.share.is_first:
        with torch.inference_mode(), trainer.autocast():
            found = trainer.objective.measure(model, split)
    if trainer.share is not None:
        found = trainer.share.told(found)
    assert found is not None
    loss, accuracy, exact = found
    trainer.seconds += trainer.clock() - begin
    return Measured(trainer.step, split, loss, accuracy, exact, weights)


def _tested(trainer: Trainer) -> Measured:
    """Measure the weights that count on the test split; the trainer stays as it is."""
    best, model = trainer.best, trainer.answering
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
