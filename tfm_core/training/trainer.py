"""The state of a training: data, model, optimiser and counters, and the batch of each step.

Everything random is drawn from the seed and the number of the step, so a trainer that continues
from a checkpoint gives the same curve, bit for bit on one CPU, as one that never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from tfm_core.choices.config import Experiment, TaskConfig, built
from tfm_core.choices.config.experiment import Turn
from tfm_core.choices.variants.record import resolve
from tfm_core.choices.variants.training import PRECISIONS
from tfm_core.data.moving import Data
from tfm_core.data.tasks import load
from tfm_core.facts.batches import Batches
from tfm_core.layers.blocks import enable_checkpointing
from tfm_core.models.build import Model
from tfm_core.sentences import StudentError
from tfm_core.training import devices
from tfm_core.training.objectives import Batch, Objective, send_batches
from tfm_core.training.optimisation import AveragedWeights, make_optimizer
from tfm_core.training.progress import Descent, Patience
from tfm_core.training.setup import autocast, choose_trained, mix, move_data, new_model, set_dropout

if TYPE_CHECKING:
    from tfm_core.data.download import Progress

_PREFETCHED_STEPS, _PREFETCHED_BYTES = 64, 4 * 2**20
"""Batches that are sampled together for a device other than the CPU: their number, and bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class BestWeights:
    """The weights of the lowest validation loss so far, averaged if they are; and their step."""

    step: int
    weights: dict[str, Tensor]


@dataclass(eq=False)
class Trainer:
    """The complete state of a training; ``step`` counts the updates made so far.

    best: kept where there is patience, for the test at the end. average: of the weights over the
    steps, where the config asks for it. n_nonfinite: steps in a row whose loss was NaN or infinite.
    clock: monotonic seconds; only differences are meaningful. remark: what a person should know of
    the data and where it is. compiled: the model that torch.compile made, to train with; its
    parameters are the model's.
    turns: settings that change on the way, by step.
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
    n_nonfinite: int = 0
    clock: Callable[[], float] = time.perf_counter
    remark: str | None = None
    compiled: nn.Module | None = None
    turns: tuple[Turn, ...] = ()
    _n_turned: int = field(default=0, repr=False)
    _since: tuple[int, int] = field(default=(0, 0), repr=False)  # step and epoch of this batch size
    _order: tuple[int, Tensor] | None = field(default=None, repr=False)
    _prefetched: dict[int, Batch] = field(default_factory=dict, repr=False)

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context in which forward passes run at the configured precision."""
        return autocast(self.experiment.trained.precision, self.device)

    @property
    def eval_model(self) -> Model:
        """The model to probe and test: the average where there is one."""
        return self.model if self.average is None else self.average.model

    @property
    def batch_size(self) -> int:
        """Examples in a whole batch: the configured number, or all there are."""
        return self.batches.size

    def __post_init__(self) -> None:
        """Begin with the settings of the experiment."""
        self.settings = self.experiment.trained
        self.dropout = built(self.experiment.model).dropout
        self.batches = Batches.of(self.settings, self.objective.n_train)

    def follow_turns(self, step: int) -> list[Turn]:
        """Give the settings the values of a step; return what was turned since the last call."""
        due = [turn for turn in self.turns[self._n_turned :] if turn.step <= step]
        for turn in due:
            self._follow(turn)
        self._n_turned += len(due)
        return due

    def _follow(self, turn: Turn) -> None:
        part, _dot, name = turn.setting.partition(".")
        if part == "model":
            self.dropout = turn.value
            set_dropout(self.model, turn.value)
            return
        if name == "batch_size":  # the next epoch begins, in its own order
            done = turn.step - 1
            self._since = done, math.ceil(self._epoch_after(done))
            self._prefetched.clear()
        self.settings = self.settings.model_copy(update={name: turn.value})
        if name == "batch_size":
            size = Batches.of(self.settings, self.objective.n_train).size
            self.batches = Batches(size)
        for group in self.optimizer.param_groups:
            if group["is_decayed"]:
                group["weight_decay"] = self.settings.weight_decay
        self.objective.label_smoothing = self.settings.label_smoothing

    @property
    def steps_per_epoch(self) -> int:
        """Full batches in the training set; what is left over waits for another epoch's order."""
        return self.objective.n_train // self.batch_size

    @property
    def epoch(self) -> float:
        """How often the training set has been read."""
        return self._epoch_after(self.step)

    def _epoch_after(self, step: int) -> float:
        first, epoch = self._since
        return epoch + self.batches.whole(step - first) / self.steps_per_epoch

    @cached_property
    def parameters(self) -> list[nn.Parameter]:
        """The parameters that are trained, tied ones once."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    @property
    def n_parameters(self) -> int:
        """Parameters of the model, frozen ones too, tied ones counted once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def batch_indices(self, step: int) -> Tensor:
        """Return (B,): the training examples of a step, counted from 1; every epoch is shuffled."""
        first, first_epoch = self._since
        begin = self.batches.whole(step - 1 - first)
        epoch, index = divmod(int(begin), self.steps_per_epoch)
        epoch += first_epoch
        if self._order is None or self._order[0] != epoch:
            generator = torch.Generator().manual_seed(mix(self.experiment.seed, 1, epoch))
            order = torch.randperm(self.objective.n_train, generator=generator)
            self._order = (epoch, order)
        begin_at = index * self.batch_size + (self.batches.half if begin % 1 else 0)
        return self._order[1][begin_at : begin_at + self.batches.size_of(step)]

    def batch(self, step: int) -> Batch:
        """Return the batch of a step, counted from 1, its tensors on the device.

        For a device other than the CPU, those of the next steps are drawn and sent with it.
        """
        if self.device.type == "cpu":
            return self._sample(step)
        if step not in self._prefetched:
            last = max(step, min(self.experiment.trained.steps, step + _PREFETCHED_STEPS - 1))
            batches: list[Batch] = []
            n_bytes = 0
            for number in range(step, last + 1):
                batches.append(self._sample(number))
                n_bytes += sum(tensor.nbytes for tensor in batches[-1].tensors)
                if n_bytes > _PREFETCHED_BYTES:
                    break
            self._prefetched = dict(enumerate(send_batches(batches, self.device), step))
        return self._prefetched[step]

    def pad_to_longest(self, is_so: bool) -> None:
        """Make all batches from the next one on as long as the longest example, or not."""
        self.objective.has_one_length = is_so
        self._prefetched.clear()

    def _sample(self, step: int) -> Batch:
        generator = torch.Generator().manual_seed(seeds_of_step(self.experiment, step)[1])
        return self.objective.sample(self.batch_indices(step), generator)


OBJECTIVES = {
    "pairs": "objectives:TextObjective",
    "own": "objectives:OwnObjective",
    "blanks": "masked:MaskedObjective",
    "spans": "masked:SpanObjective",
    "stream": "language:LanguageObjective",
    "pictures": "picture_objectives:ImageObjective",
    "captions": "picture_objectives:CaptionObjective",
}
"""By the name that a task calls it; each is imported with the data that it learns from."""


def objective_of(task: TaskConfig) -> type[Objective]:
    """Return how a task is learned, made of its data, the task and the settings of training."""
    if task.objective is None:
        raise StudentError(task.without_data)
    objective: type[Objective] = resolve(f"tfm_core.training.{OBJECTIVES[task.objective]}")
    return objective


def build(
    experiment: Experiment,
    device: str = "cpu",
    progress: Progress | None = None,
    *,
    data: Data | None = None,
) -> Trainer:
    """Make data, model and optimiser, all on the device.

    progress: called with (done, total, words) during a download. data: of the experiment, where it
    is loaded already. Raises ValueError, in a sentence,
    for a device that is not available and for data that cannot be loaded.
    """
    torch_device = devices.resolve(device)
    task = experiment.task
    if data is None:
        data = load(task, seed=experiment.seed, progress=progress)
    data, remark = move_data(data, experiment, torch_device)
    objective = objective_of(task)(
        data,
        task,
        label_smoothing=experiment.trained.label_smoothing,
        mistakes=experiment.trained.mistakes,
        balance_weight=getattr(experiment.model, "balance_weight", 0.0),
    )
    model = new_model(experiment)
    choose_trained(model, experiment, mix(experiment.seed, 4))
    model = model.to(torch_device)
    if experiment.trained.checkpointing:
        enable_checkpointing(model)
    precision, decay = PRECISIONS[experiment.trained.precision], experiment.trained.ema_decay
    return Trainer(
        experiment=experiment,
        device=torch_device,
        data=data,
        objective=objective,
        model=model,
        patience=Patience(experiment.trained.patience),
        descent=Descent(_lowest(objective, may_be_zero=bool(task.class_names))),
        optimizer=make_optimizer(model, experiment.trained),
        scaler=torch.amp.GradScaler(torch_device.type, enabled=precision.scales_loss),
        average=AveragedWeights(model, decay) if decay else None,
        remark=remark,
    )


def seeds_of_step(experiment: Experiment, step: int) -> tuple[int, int]:
    """Return the seed of a step's dropout, and that of its objective's augmentation."""
    return mix(experiment.seed, 3, step), mix(experiment.seed, 2, step)


def _lowest(objective: Objective, *, may_be_zero: bool) -> float:
    """Return the lowest loss that the targets allow; where that is unknown, half of guessing's.

    may_be_zero: take it to be 0 where it is unknown, as it nearly is for pictures.
    """
    floor = objective.loss_lower_bound()
    if floor is not None:
        return floor
    return 0.0 if may_be_zero else math.log(objective.n_classes) / 2
