"""The work that is timed: forward and backward of the user's model on a real batch.

Dropout and augmentation are off, so all sides compute the same numbers; there is no update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from tfm_core.choices.config import (
    Experiment,
    ImageTaskConfig,
    OwnPicturesTaskConfig,
    TextTaskConfig,
)
from tfm_core.data.image_data import EMBEDDED
from tfm_core.inspect.speed.report import Equality
from tfm_core.sentences import Paragraph, StudentError
from tfm_core.training.loop import Trainer, build

MAX_PARAMETERS = 50_000_000
MAX_EXAMPLES = 2048
"""Examples to take batches from."""

Around = Callable[[], AbstractContextManager[object]]


@dataclass(eq=False)
class Bench:
    """A model with its data on a device."""

    experiment: Experiment
    trainer: Trainer

    @classmethod
    def of(cls, experiment: Experiment, device: str = "cpu") -> Bench:
        """Build the model of an experiment. Raises ValueError, in a sentence, where it cannot."""
        plain = without_chance(experiment)
        check_size(plain)
        return cls(plain, build(plain, device))

    @property
    def model(self) -> nn.Module:
        """The model; in training mode, without dropout."""
        return self.trainer.model

    @property
    def device(self) -> torch.device:
        """Where model and data lie."""
        return self.trainer.device

    def indices(self, size: int | None = None) -> Tensor:
        """Return (B,): the first training examples, by default a batch of them."""
        return torch.arange(min(size or self.trainer.batch_size, self.trainer.objective.n_train))

    def loss(self, indices: Tensor | None = None) -> Tensor:
        """Return the mean loss of a batch."""
        chosen = self.indices() if indices is None else indices
        generator = torch.Generator().manual_seed(0)
        return self.trainer.objective.loss_and_metrics(self.model, chosen, generator).loss

    def pass_(self, around: Around = nullcontext, indices: Tensor | None = None) -> Tensor:
        """Go forward inside a context, and backward; return the loss."""
        self.model.zero_grad(set_to_none=True)
        with around():
            loss = self.loss(indices)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def results(self, around: Around = nullcontext) -> dict[str, Tensor]:
        """Return loss, output and all gradients of one pass, each in one float32 tensor."""
        outputs: list[Tensor] = []

        def keep(_module: nn.Module, _inputs: object, output: object) -> None:
            if isinstance(output, Tensor):
                outputs.append(output.detach().float().flatten())

        with self.model.register_forward_hook(keep):
            loss = self.pass_(around)
        gradients = [p.grad.flatten() for p in self.model.parameters() if p.grad is not None]
        tensors = {"loss": loss.float()[None], "gradients": torch.cat(gradients).float()}
        return tensors | ({"output": torch.cat(outputs)} if outputs else {})


def without_chance(experiment: Experiment) -> Experiment:
    """Return an experiment without dropout and augmentation, and with few examples.

    Small grey pictures come from the digits in the app: no download, same work.
    """
    model, task = experiment.model, experiment.task
    if "dropout" in type(model).model_fields:
        model = model.replace(dropout=0.0)
    off = {name: 0.0 for name in ("shift", "rotation", "scale") if name in type(task).model_fields}
    if off:
        task = task.replace(**off)
    is_small = task.picture_shape == (1, 28, 28) and not isinstance(task, OwnPicturesTaskConfig)
    if is_small and task.class_names:
        n = min(experiment.task_as(ImageTaskConfig).n_validation, 500)
        task = task.replace(name=EMBEDDED, n_validation=n)
    if isinstance(task, TextTaskConfig):
        fewer = max(experiment.trained.batch_size, MAX_EXAMPLES)
        task = task.replace(n_train=min(task.n_train, fewer), n_validation=8, n_test=8)
    training = experiment.trained.replace(precision="fp32")
    return experiment.replace(
        model=model.model_dump(), task=task.model_dump(), training=training.model_dump()
    )


def check_size(experiment: Experiment) -> None:
    """Raise ValueError, in a sentence, where a model is too large to measure in a moment."""
    from tfm_core.models.build import init_on_meta
    from tfm_core.training.setup import new_model

    with init_on_meta():
        count = sum(parameter.numel() for parameter in new_model(experiment).parameters())
    if count > MAX_PARAMETERS:
        raise StudentError(
            Paragraph("speed/too-large", count=count, most_parameters=MAX_PARAMETERS)
        )


def compare(
    reference: Mapping[str, Tensor],
    other: Mapping[str, Tensor],
    side: str,
    *,
    relative: float = 1e-4,
    part: str = "",
) -> tuple[Equality, ...]:
    """Return the differences between two sides' results.

    relative: the tolerance as a share of the reference's largest value (at least 1e-3).
    """
    equalities = []
    for name, value in reference.items():
        largest = max(float(value.abs().max()), 1e-3)
        difference = float((value - other[name].to(value.device)).abs().max())
        equalities.append(Equality(f"{part}{name}", side, difference, relative * largest))
    return tuple(equalities)


@dataclass
class SavedBytes:
    """Counts while ``pack`` is the hook in force."""

    storages: dict[int, int] = field(default_factory=dict)
    _kept: list[Tensor] = field(default_factory=list)  # so that no storage's address comes back

    def pack(self, tensor: Tensor) -> Tensor:
        """Count a tensor as it is saved."""
        # a view of a parameter, such as its transpose, is no copy
        if not isinstance(tensor, nn.Parameter) and not isinstance(tensor._base, nn.Parameter):
            storage = tensor.untyped_storage()
            self.storages[storage.data_ptr()] = storage.nbytes()
            self._kept.append(tensor)
        return tensor

    @property
    def total(self) -> int:
        """Bytes of all storages."""
        return sum(self.storages.values())


def saved_bytes(call: Callable[[], object]) -> int:
    """Return the bytes that autograd saves in a call, without the weights themselves."""
    counter = SavedBytes()
    with torch.autograd.graph.saved_tensors_hooks(counter.pack, lambda tensor: tensor):
        call()
    return counter.total
