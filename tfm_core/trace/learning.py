"""One training step on a copy of a model: what the training loop does, held still at each stage.

The run itself is never touched: weights and optimiser are copied, data are shared and only read.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core import byte_cache
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.training import OPTIMISERS, Optimiser
from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import own_name, own_names
from tfm_core.inspect.attention.trained import data_of
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.tables import Column, Columns
from tfm_core.sentences import N_, Paragraph, StudentError
from tfm_core.training import checkpoints
from tfm_core.training.loop import Trainer, build, seeds_of_step
from tfm_core.training.losses import LossCall, loss_calls

MAX_PARAMETERS = 5_000_000
MAX_ROWS = 256
"""Examples of a batch that are used here at most, so that a page stays quick."""


LOSSES = Columns(
    {
        "example": Column(N_("example of the batch"), ","),
        "step": Column(N_("steps"), ","),
        "rate": Column(N_("learning rate"), ".2g"),
        "loss": Column(N_("loss (nats)"), ".4f", {"exponentformat": "e"}),
        "value": Column(N_("loss (nats)"), ".4f", {"exponentformat": "e"}),
        "input": Column(),
        "class": Column(N_("class"), axis={"type": "category"}),
        "chance": Column(N_("probability (softmax of logits)"), ".6f"),
        "logit": Column(N_("logit"), ".4f"),
        "nats": Column(N_("-log p"), ".4f"),
        "row": Column(N_("parameter, input to output")),
        "norm": Column(
            N_("gradient norm"), ".4g", {"rangemode": "tozero", "nticks": 5, "exponentformat": "e"}
        ),
        "name": Column(),
        "size": Column(N_("numbers"), ","),
        "number": Column(N_("singular values, largest first"), ","),
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class StepTaken:
    """A step that was taken, from one trainer to the next.

    losses of the same batch, before and after it. gradients: by parameter name, before clipping;
    norm: of all of them together; scale: what clipping multiplied them with.
    """

    before: Trainer
    after: Trainer
    rate: float
    loss_before: float
    loss_after: float
    norm: float
    scale: float
    gradients: Mapping[str, Tensor]

    @property
    def optimiser(self) -> Optimiser:
        """The optimiser that was chosen."""
        return OPTIMISERS[self.before.experiment.trained.optimizer]

    def mover(self, name: str) -> Optimiser:
        """Return the optimiser that moves a parameter."""
        return self.optimiser.mover(self.options(name))

    def options(self, name: str) -> dict[str, Any]:
        """Return the settings of the optimiser for a parameter, under torch's names."""
        weight = self.after.model.get_parameter(name)
        for group in self.after.optimizer.param_groups:
            if any(one is weight for one in group["params"]):
                return {key: value for key, value in group.items() if key != "params"}
        raise KeyError(name)

    def memory(self, name: str) -> dict[str, Tensor]:
        """Return what the optimiser remembered of a parameter, under torch's names."""
        weight = self.before.model.get_parameter(name)
        state = self.before.optimizer.state.get(weight, {})
        return {key: value for key, value in state.items() if isinstance(value, Tensor)}


def start(experiment: Experiment, checkpoint: Path | None = None) -> Trainer:
    """Return a trainer on the CPU at a checkpoint, or before its first step.

    Precision is fp32. Raises ValueError, in a sentence, for models that are too large and for data
    or checkpoints that cannot be had.
    """
    from tfm_core.models.build import init_on_meta
    from tfm_core.training.setup import new_model

    with init_on_meta():
        count = sum(parameter.numel() for parameter in new_model(experiment).parameters())
    if count > MAX_PARAMETERS:
        raise StudentError(
            Paragraph("training_step/too-large", count=count, most_parameters=MAX_PARAMETERS)
        )
    torch.set_num_threads(1)
    training = experiment.trained.replace(precision="fp32")
    data = data_of(experiment)
    trainer = build(experiment.replace(training=training.model_dump()), data=data)
    if checkpoint is not None:
        checkpoints.load(trainer, checkpoint)
    trainer.model.train()
    return trainer


def copied(trainer: Trainer) -> Trainer:
    """Return a trainer with its own weights and optimiser, on the same data."""
    model, optimizer = copy.deepcopy((trainer.model, trainer.optimizer))
    return replace(trainer, model=model, optimizer=optimizer)


def rows(trainer: Trainer) -> Tensor:
    """Return (B,): the training examples of the next step."""
    return trainer.batch_indices(trainer.step + 1)[:MAX_ROWS]


def scheduled_rate(trainer: Trainer) -> float:
    """Return the learning rate of the next step; its peak where the schedule has ended."""
    config = trainer.experiment.trained
    if trainer.step >= config.steps:
        return config.learning_rate
    return config.rate(trainer.step + 1)


@contextmanager
def outputs_of(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the output tensors of a model within the context."""
    outputs: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, Tensor):
            outputs.append(output)

    with model.register_forward_hook(keep):
        yield outputs


@contextmanager
def step_randomness(trainer: Trainer) -> Iterator[torch.Generator]:
    """Draw within the context what the next step of a training would: dropout and augmentation."""
    dropout, augmentation = seeds_of_step(trainer.experiment, trainer.step + 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(dropout)
        yield torch.Generator().manual_seed(augmentation)


def forward(trainer: Trainer, at: Trainer | None = None) -> tuple[Tensor, LossCall | None]:
    """Run the batch of the next step forward; return the loss and what it was computed from.

    at: the trainer whose batch and random numbers are used, if not the model's own. The loss is
    still in the graph; there is no call where the objective's loss is no cross-entropy.
    """
    where = at or trainer
    with step_randomness(where) as generator, loss_calls() as calls:
        loss = trainer.objective.loss_and_metrics(trainer.model, rows(where), generator).loss
    return loss, next((call for call in calls if call.loss is loss), None)


def gradients(trainer: Trainer) -> tuple[float, dict[str, Tensor]]:
    """Return the loss and a copy of every parameter's gradient; none is left in the model."""
    trainer.model.zero_grad(set_to_none=True)
    loss, _call = forward(trainer)
    loss.backward()  # type: ignore[no-untyped-call]
    by_name = {
        name: (torch.zeros_like(one) if one.grad is None else one.grad.clone())
        for name, one in trainer.model.named_parameters()
    }
    trainer.model.zero_grad(set_to_none=True)
    return float(loss.detach()), by_name


def norm_of(gradients: Iterable[Tensor]) -> float:
    """Return the norm of gradients together."""
    return float(torch.linalg.vector_norm(torch.stack([one.norm() for one in gradients])))


def clip_scale(gradients: Mapping[str, Tensor], limit: float) -> tuple[float, float]:
    """Return the norm of all gradients together, and what clipping multiplies them with.

    As ``nn.utils.clip_grad_norm_``: limit / (norm + 1e-6), at most 1; a limit of 0 is none.
    """
    norm = norm_of(gradients.values())
    return norm, min(1.0, limit / (norm + 1e-6)) if limit else 1.0


def take_step(trainer: Trainer, rate: float) -> StepTaken:
    """Take the next step on a copy, with a learning rate."""
    loss, by_name = gradients(trainer)
    after, loss_after = _moved(trainer, by_name, rate)
    norm, scale = clip_scale(by_name, trainer.experiment.trained.clip_norm)
    return StepTaken(trainer, after, rate, loss, loss_after, norm, scale, by_name)


def losses_at(trainer: Trainer, rates: Sequence[float]) -> list[float]:
    """Return the loss of the same batch after a step with each learning rate; inf if no number."""
    _loss, by_name = gradients(trainer)
    losses = [_moved(trainer, by_name, rate)[1] for rate in rates]
    return [loss if math.isfinite(loss) else math.inf for loss in losses]


def _moved(trainer: Trainer, gradients: Mapping[str, Tensor], rate: float) -> tuple[Trainer, float]:
    """Return a copy that took a step along gradients, and its loss of the same batch."""
    after = copied(trainer)
    update(after, gradients, rate)
    with torch.no_grad():
        return after, float(forward(after, at=trainer)[0])


def update(trainer: Trainer, gradients: Mapping[str, Tensor], rate: float) -> None:
    """Have the trainer's own optimiser take a step along gradients, which it clips."""
    _norm, scale = clip_scale(gradients, trainer.experiment.trained.clip_norm)
    for name, one in trainer.model.named_parameters():
        one.grad = gradients[name] * scale
    for group in trainer.optimizer.param_groups:
        group["lr"] = rate
    trainer.optimizer.step()
    trainer.optimizer.zero_grad(set_to_none=True)
    trainer.step += 1


def batch(trainer: Trainer) -> tuple[pd.DataFrame, float | None]:
    """Return the examples of the next step, and the loss of all; None where it has no classes.

    number: in the training set; input, target, and, where the data are pictures, picture, uint8
    (C, H, W). With a loss of classes, loss: the mean of its answers that count, 0 without any, and
    answers: their rows in the logits of the loss.
    """
    indices = rows(trainer)
    inputs, targets = trainer.data.shown(indices)
    table = pd.DataFrame({"number": indices.tolist(), "input": inputs, "target": targets})
    pictures = trainer.data.train.pictures(indices)
    if pictures is not None:
        table = table.assign(picture=list(pictures.numpy()))
    found = answers(trainer)
    if found is None:
        return table, None
    call, owners = found
    losses = F.cross_entropy(
        call.given.detach(),
        call.targets,
        reduction="none",
        ignore_index=call.ignored,
        label_smoothing=call.smoothing,
    )
    counted = ((call.targets != call.ignored) & (owners >= 0)).nonzero().flatten()
    own, n = owners[counted], len(indices)
    sums = torch.zeros(n).index_add(0, own, losses[counted].float())
    mean = sums / own.bincount(minlength=n).clamp(min=1)
    numbers = [counted[own == example].tolist() for example in range(n)]
    return table.assign(loss=mean.numpy(), answers=numbers), float(call.loss.detach())


def answers(trainer: Trainer) -> tuple[LossCall, Tensor] | None:
    """Run the next batch forward; None where its loss is no cross-entropy of the model's output.

    Then (N,): for each row of the logits the example that it was taken from, -1 if none. Autograd
    knows: every row sends its number back, and it arrives where the row came from.
    """
    with outputs_of(trainer.model) as outputs:
        _loss, call = forward(trainer)
    if call is None or not outputs:
        return None
    logits = call.logits
    numbers = torch.arange(1, len(logits) + 1, dtype=logits.dtype)
    (arrived,) = torch.autograd.grad((logits[:, 0] * numbers).sum(), outputs[-1])
    owners = torch.full((len(logits),), -1)
    for example, row in enumerate(arrived.flatten(1)):
        owners[row[row != 0].long() - 1] = example
    return call, owners


def one_answer(
    trainer: Trainer, number: int, shown: int = 8
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return one answer of the next batch from logits to its loss, by its row.

    A table of the likeliest classes and the right one: class, logit, chance, nats (-log p). Then,
    of the right one, its name as ``target``, logit, p, log_p and loss; log_sum, n_classes, and the
    share of smoothing; is_changed: a mistake made these logits of the model's, and the loss takes
    them for logits.
    """
    _loss, call = forward(trainer)
    assert call is not None
    row = call.given.detach()[number].double()
    target = int(call.targets[number])
    log_sum = float(row.logsumexp(0))
    best = row.argsort(descending=True)[:shown].tolist()
    chosen = best if target in best else [*best[: shown - 1], target]
    log_p = row - log_sum
    picked = torch.tensor(chosen)
    names = trainer.data.names[getattr(trainer.objective, "first_class", 0) :]
    table = LOSSES.table(
        {
            "class": [names[number] for number in chosen],
            "logit": row[picked].float().numpy(),
            "chance": log_p[picked].exp().float().numpy(),
            "nats": -log_p[picked].float().numpy(),
        }
    )
    return table, {
        "target": names[target],
        "logit": float(row[target]),
        "p": float(log_p[target].exp()),
        "log_p": float(log_p[target]),
        "loss": -float(log_p[target]),
        "log_sum": log_sum,
        "n_classes": row.numel(),
        "smoothing": call.smoothing,
        "is_changed": call.given is not call.logits,
    }


_lock = threading.RLock()  # taken before the cache's own lock, against deadlocks
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelAtStep:
    """A model, at a checkpoint or new, and the learning rates of the steps taken from there.

    A trainer follows from these, so undo is one rate less. All who ask share the trainers, which
    one at a time uses. text: of the experiment; mark: changes with the checkpoint.
    """

    text: str
    checkpoint: str = ""
    mark: int = 0
    rates: tuple[float, ...] = ()

    @property
    def experiment(self) -> Experiment:
        """What is trained."""
        return Experiment.model_validate_json(self.text)

    @property
    def own_names(self) -> Mapping[str, str]:
        """What the model's family calls each parameter, by its name in the engine."""
        experiment = self.experiment
        known = own_names(experiment.model, data_shape(experiment))
        paths = self.use(lambda trainer: [path for path, _one in trainer.model.named_parameters()])
        return {path: own_name(path, known) or path for path in paths}

    @property
    def subject(self) -> str:
        """Name the model before any step."""
        return f"{self.checkpoint} {self.mark} {self.text}"

    def after(self, *rates: float) -> ModelAtStep:
        """Return the model after more steps."""
        return replace(self, rates=(*self.rates, *rates))

    @property
    def earlier(self) -> ModelAtStep:
        """The model before the last step."""
        return replace(self, rates=self.rates[:-1])

    def use(self, work: Callable[[Trainer], T]) -> T:
        """Return ``work(trainer)``. Raises ValueError, in a sentence, where there is no trainer."""
        with _lock:
            at = _at(self)
            return work(at.after if isinstance(at, StepTaken) else at)

    def cached(self, name: str, work: Callable[[Trainer], T]) -> T:
        """Return the same, cached by name."""
        with _lock:
            return byte_cache.SHARED.get(("training step", name, self), lambda: self.use(work))

    @property
    def last_step(self) -> StepTaken:
        """The step last taken. Raises ValueError."""
        with _lock:
            step = _at(self)
        assert isinstance(step, StepTaken)
        return step


@byte_cache.cached
def _at(model: ModelAtStep) -> Trainer | StepTaken:
    """Return the trainer before any step, or the step last taken."""
    if model.rates:
        return model.earlier.use(lambda trainer: take_step(trainer, model.rates[-1]))
    return start(model.experiment, Path(model.checkpoint) if model.checkpoint else None)


@cache
def example() -> Experiment:
    """Return a translator that learns by w - lr * g alone: no momentum, decay or clipping."""
    base = PRESETS["translate"].experiment
    model = {"d_model": 32, "n_heads": 2, "d_ff": 64}
    training = {
        "optimizer": "sgd",
        "beta1": 0.0,
        "learning_rate": 0.2,
        "schedule": "constant",
        "warmup": 0.0,
        "weight_decay": 0.0,
        "clip_norm": 0.0,
        "batch_size": 16,
    }
    return base.replace(
        model=base.model.replace(**model).model_dump(),
        training=base.trained.replace(**training).model_dump(),
    )


SAME = 1e-6
"""A loss that changes by less counts as the same."""


def guessing_question(n: int) -> Question:
    """Ask for the loss of a model that finds all of n classes equally likely."""
    even = f"{math.log(n):.2f}"
    return choice_question(
        N_("If all {n:,} classes were equally likely, what would the loss be?", n=n),
        even,
        {
            f"{1 / n:.2g}": N_("That is the probability of each; the loss is its −ln."),
            f"{math.log2(n):.2f}": N_("That is in bits; the loss is in nats."),
            f"{n:,}": N_("That is the perplexity, exp(loss)."),
            "0": N_("That takes probability 1 for the right class."),
        },
        N_("−ln(1/{n}) = ln {n}: the guessing line of every loss curve.", n=n),
    )


def step_question(rate: float, before: float, after: float) -> Question:
    """Ask what a step does to the loss of the same batch. before, after: the losses."""
    change = after - before
    falls, same, rises = N_("It falls"), N_("It stays the same"), N_("It rises")
    answer = same if abs(change) < SAME else falls if change < 0 else rises
    return choice_question(
        N_("One step with learning rate {rate:.3g}: what happens to this batch's loss?", rate=rate),
        answer,
        {
            falls: N_("The step goes downhill, but too far."),
            same: N_("Every weight with a gradient moves."),
            rises: N_("The step goes downhill and is short enough."),
        },
        N_("From {one:.4g} to {other:.4g}.", one=before, other=after),
    )
