"""One training step on a copy of a model: what the training loop does, held still at each stage.

The run itself is never touched: weights and optimiser are copied, data are shared and only read.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.sentences import N_, Paragraph, StudentError
from tfm_core.training import checkpoints
from tfm_core.training.loop import Trainer, build, seeds_of_step

MAX_PARAMETERS = 5_000_000
MAX_ROWS = 256
"""Examples of a batch that are used here at most, so that a page stays quick."""


@dataclass(frozen=True, slots=True, eq=False)
class StepTaken:
    """A step that was taken. Gradients by parameter name, before clipping.

    scale: what clipping multiplied them with; state_before: the optimiser's memory.
    """

    rate: float
    loss_before: float
    loss_after: float
    norm: float
    scale: float
    gradients: Mapping[str, Tensor]
    before: Mapping[str, Tensor]
    after: Mapping[str, Tensor]
    state_before: Mapping[str, Mapping[str, Tensor]]
    options: Mapping[str, Mapping[str, Any]]


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
    trainer = build(experiment.replace(training=training.model_dump()))
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
def chance(trainer: Trainer) -> Iterator[torch.Generator]:
    """Draw within the context what the next step of a training would: dropout and augmentation."""
    dropout, augmentation = seeds_of_step(trainer.experiment, trainer.step + 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(dropout)
        yield torch.Generator().manual_seed(augmentation)


def forward(trainer: Trainer, at: Trainer | None = None) -> tuple[Tensor, LossCall | None]:
    """Run the batch of the next step forward; return the loss and what it was computed from.

    at: the trainer whose batch and chance it is, if not the model's own. The loss is still in the
    graph; there is no call where the objective's loss is no cross-entropy.
    """
    where = at or trainer
    listening = Listening()
    with chance(where) as generator, listening:
        loss = trainer.objective.loss_and_metrics(trainer.model, rows(where), generator).loss
    return loss, listening.call_of(loss)


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


def take(trainer: Trainer, rate: float) -> tuple[Trainer, StepTaken]:
    """Take the next step on a copy, with a learning rate; return the copy and what happened."""
    loss, by_name = gradients(trainer)
    norm, scale = clip_scale(by_name, trainer.experiment.trained.clip_norm)
    after = copied(trainer)
    named = dict(after.model.named_parameters())
    before = {name: one.detach().clone() for name, one in named.items()}
    state = after.optimizer.state
    state_before = {
        name: {
            key: value.clone()
            for key, value in state.get(one, {}).items()
            if isinstance(value, Tensor)
        }
        for name, one in after.model.named_parameters()
    }
    update(after, by_name, rate, scale)
    with torch.no_grad():
        loss_after = float(forward(after, at=trainer)[0])
    after.step += 1
    step = StepTaken(
        rate,
        loss,
        loss_after,
        norm,
        scale,
        by_name,
        before,
        {name: one.detach().clone() for name, one in named.items()},
        state_before,
        _options(after),
    )
    return after, step


def update(trainer: Trainer, gradients: Mapping[str, Tensor], rate: float, scale: float) -> None:
    """Have the trainer's own optimiser move the weights along gradients."""
    for name, one in trainer.model.named_parameters():
        one.grad = gradients[name] * scale
    for group in trainer.optimizer.param_groups:
        group["lr"] = rate
    trainer.optimizer.step()
    trainer.optimizer.zero_grad(set_to_none=True)


def losses_at(trainer: Trainer, rates: Sequence[float]) -> list[float]:
    """Return the loss of the same batch after a step with each learning rate; inf if no number."""
    _loss, by_name = gradients(trainer)
    _norm, scale = clip_scale(by_name, trainer.experiment.trained.clip_norm)
    losses = []
    for rate in rates:
        after = copied(trainer)
        update(after, by_name, rate, scale)
        with torch.no_grad():
            loss = float(forward(after, at=trainer)[0])
        losses.append(loss if math.isfinite(loss) else math.inf)
    return losses


def _options(trainer: Trainer) -> dict[str, dict[str, Any]]:
    names = {id(one): name for name, one in trainer.model.named_parameters()}
    return {
        names[id(one)]: {key: value for key, value in group.items() if key != "params"}
        for group in trainer.optimizer.param_groups
        for one in group["params"]
    }


_CHANGES = (Tensor.softmax, Tensor.argmax, Tensor.float, nn.functional.one_hot)
"""What mistakes put between the logits and the loss."""


@dataclass(frozen=True, slots=True)
class LossCall:
    """What a cross-entropy was called with: logits (N, classes), targets (N,).

    given: what it was called with in their place, where something stands between, by mistake.
    """

    logits: Tensor
    given: Tensor
    targets: Tensor
    ignore_index: int
    smoothing: float


class Listening(TorchFunctionMode):
    """Notes the calls of ``F.cross_entropy``, whichever objective makes them."""

    def __init__(self) -> None:
        """Start with none."""
        super().__init__()
        self.calls: list[tuple[LossCall, Tensor]] = []
        self._made: list[tuple[Tensor, Tensor]] = []

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Note the arguments, and call."""
        named = dict(kwargs or {})
        out = func(*args, **named)
        if func in _CHANGES:
            self._made.append((args[0], out))
        if func is nn.functional.cross_entropy:
            given, targets = args[:2]
            logits = self._origin(given)
            ignored, smoothing = named.get("ignore_index", -100), named.get("label_smoothing", 0.0)
            self.calls.append((LossCall(logits, given, targets, ignored, smoothing), out))
        return out

    def _origin(self, given: Tensor) -> Tensor:
        """Return the logits of which a mistake made what the loss is given."""
        for source, made in reversed(self._made):
            if made is given and source is not given:
                return self._origin(source)
        return given

    def call_of(self, loss: Tensor) -> LossCall | None:
        """Return the call that gave a loss, None where no cross-entropy did."""
        return next((call for call, out in self.calls if out is loss), None)


@cache
def example() -> Experiment:
    """Return a translator that learns by w - lr * g alone: no momentum, decay or clipping."""
    base = PRESETS["translate"].experiment
    model = {"d_model": 32, "n_heads": 2, "d_ff": 64}
    training = {
        "optimizer": "sgd", "beta1": 0.0, "learning_rate": 0.2, "schedule": "constant",
        "warmup": 0.0, "weight_decay": 0.0, "clip_norm": 0.0, "batch_size": 16,
    }  # fmt: skip
    return base.replace(
        model=base.model.replace(**model).model_dump(),
        training=base.trained.replace(**training).model_dump(),
    )


SAME = 1e-6
"""A loss that changes by less counts as the same."""


def about_guessing(n: int) -> Question:
    """Ask for the loss of a model that finds all of n classes equally likely."""
    even = f"{math.log(n):.2f}"
    return choice_question(
        N_("If all {n:,} classes were equally likely, what would the loss be?", n=n),
        even,
        {
            f"{1 / n:.2g}": N_("That is the probability of each; the loss is −ln of it."),
            f"{math.log2(n):.2f}": N_("That is in bits; the loss is in nats, with ln."),
            f"{n:,}": N_("That is the perplexity, exp(loss)."),
            "0": N_("Only a model that gives the right class probability 1 has loss 0."),
        },
        N_("−ln(1/{n}) = ln {n}: the line of guessing on every loss curve.", n=n),
    )


def about_step(taken: StepTaken) -> Question:
    """Ask what a step does to the loss of its own batch."""
    change = taken.loss_after - taken.loss_before
    falls, same, rises = N_("It falls"), N_("It stays the same"), N_("It rises")
    answer = same if abs(change) < SAME else falls if change < 0 else rises
    return choice_question(
        N_(
            "One step with learning rate {rate:.3g}: what happens to this batch's loss?",
            rate=taken.rate,
        ),
        answer,
        {
            falls: N_("A step follows the slope downhill, but this one goes too far."),
            same: N_("Every weight with a gradient moves, so the loss changes."),
            rises: N_("The step goes against the gradient, and here it is short enough."),
        },
        N_("From {one:.4g} to {other:.4g}.", one=taken.loss_before, other=taken.loss_after),
    )
