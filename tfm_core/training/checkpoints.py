"""Checkpoints: weights, their average, optimiser and counters in one safetensors file.

It is replaced at once.

Data order and random numbers derive from seed and step (see ``loop``), so they need no saving.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from tfm_core.choices.config import Experiment
from tfm_core.data.tasks import data_shape
from tfm_core.disk import replace, sync_file, sync_folder
from tfm_core.models.build import Model, build_model, init_on_meta
from tfm_core.pretrained.lora import merge_lora
from tfm_core.reading import Unreadable, open_tensors
from tfm_core.sentences import StudentError
from tfm_core.training.checkpoint_facts import CheckpointFacts, facts_of
from tfm_core.training.setup import choose_trained, drawn_model
from tfm_core.training.trainer import BestWeights, Trainer

FILE = "checkpoint.safetensors"
MODEL, _AVERAGE = "model/", "average/"


class CheckpointDamaged(StudentError):
    """A checkpoint cannot be read, or is not of this model."""


def save(trainer: Trainer, folder: Path) -> None:
    """Write a checkpoint into ``folder``; the one before stays whole until this one is complete.

    When this returns it is on the disk, name and content, and a power cut keeps it. Raises OSError
    when it cannot be written.
    """
    tensors = {f"{MODEL}{name}": value for name, value in trainer.model.state_dict().items()}
    if trainer.average is not None:
        averaged = trainer.average.model.state_dict()
        tensors |= {f"{_AVERAGE}{name}": value for name, value in averaged.items()}
    for parameter, weight in trainer.model.named_parameters():
        for name, value in trainer.optimizer.state.get(weight, {}).items():
            if isinstance(value, Tensor):
                tensors[f"optimizer/{parameter}/{name}"] = value
    # clones: tied weights share memory, which the format does not allow
    tensors = {name: value.detach().cpu().clone() for name, value in tensors.items()}
    facts = {
        "step": trainer.step,
        "seconds": trainer.seconds,
        "scaler": trainer.scaler.state_dict(),
        "patience": trainer.patience.state(),
        "descent": trainer.descent.state(),
    }
    if trainer.average is not None:
        facts["averaged"] = trainer.average.n_updates
    if not folder.is_dir():
        folder.mkdir(parents=True)
        sync_folder(folder.parent)
    beside = folder / f"{FILE}.new"
    try:
        save_file(tensors, beside, {"trainer": json.dumps(facts)})
        sync_file(beside)
        replace(beside, folder / FILE)
    except SafetensorError as error:  # the writer wraps a full disk in its own error
        beside.unlink(missing_ok=True)
        raise OSError(f"The checkpoint could not be written: {error}") from error
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(folder)


def load(trainer: Trainer, folder: Path) -> None:
    """Restore a trainer from the checkpoint in ``folder``. Raises CheckpointDamaged.

    An average that the checkpoint lacks begins with its weights.
    """
    tensors, facts = _read(folder)
    _load_weights(trainer.model, _part(tensors, MODEL), folder)
    if trainer.average is not None:
        with _of_this_shape(folder):
            trainer.average.restore(_part(tensors, _AVERAGE) or None, facts.averaged)
    weights = [
        parameter for group in trainer.optimizer.param_groups for parameter in group["params"]
    ]
    place = {weight: index for index, weight in enumerate(weights)}
    named = trainer.model.named_parameters()
    places = {name: place[parameter] for name, parameter in named if parameter.requires_grad}
    saved: dict[int, dict[str, Tensor]] = {}
    try:
        for key, value in tensors.items():
            if key.startswith("optimizer/"):
                _, parameter, name = key.split("/")
                saved.setdefault(places[parameter], {})[name] = value
        state = trainer.optimizer.state_dict()
        state["state"] = saved
        trainer.optimizer.load_state_dict(state)
        trainer.scaler.load_state_dict(facts.scaler)
    except (KeyError, ValueError, TypeError, RuntimeError):
        raise CheckpointDamaged(
            "The checkpoint {name} lacks the state of this optimiser.", name=folder.name
        ) from None
    trainer.patience.restore(facts.patience)
    trainer.descent.restore(facts.descent)
    trainer.step, trainer.seconds = facts.step, facts.seconds


def load_best(trainer: Trainer, folder: Path) -> None:
    """Give a trainer the best weights so far from the checkpoint in ``folder``.

    Where training crashed between a better validation and its next checkpoint, the file holds
    others: they are left, and training gets there again. Raises CheckpointDamaged.
    """
    tensors, facts = _read(folder)
    if facts.step != trainer.patience.best_step:
        return
    weights = _part(tensors, MODEL) if trainer.average is None else _eval_weights(tensors)
    on_device = {name: value.to(trainer.device) for name, value in weights.items()}
    trainer.best = BestWeights(facts.step, on_device)


def load_weights(model: Model, folder: Path) -> int:
    """Fill a model with the weights of a checkpoint that count; return its step.

    They are the averaged ones, where the training averages. Raises CheckpointDamaged.
    """
    tensors, facts = _read(folder)
    _load_weights(model, _eval_weights(tensors), folder)
    if not all(bool(weight.isfinite().all()) for weight in model.parameters()):
        raise CheckpointDamaged(
            "The weights in the checkpoint {name} are NaN, so it can't answer.",
            name=folder.name,
        )
    return facts.step


def load_model(experiment: Experiment, folder: Path) -> tuple[Model, int]:
    """Build the model of an experiment on the CPU with the weights of a checkpoint; and its step.

    See ``load_weights``. Raises CheckpointDamaged.
    """
    if experiment.training is None:
        return _mapped(experiment, folder)
    model = drawn_model(experiment)
    choose_trained(model, experiment, 0)
    step = load_weights(model, folder)
    merge_lora(model)
    return model.requires_grad_(True).eval(), step


def write_plain(experiment: Experiment, folder: Path, path: Path) -> None:
    """Write the weights of a checkpoint that count as those of a model without LoRA.

    Raises CheckpointDamaged and OSError.
    """
    model, step = load_model(experiment, folder)
    tensors = {f"{MODEL}{name}": parameter.detach() for name, parameter in model.named_parameters()}
    save_file(tensors, path, {"trainer": json.dumps({"step": step, "seconds": 0.0, "scaler": {}})})
    sync_file(path)


def _mapped(experiment: Experiment, folder: Path) -> tuple[Model, int]:
    """Return a model whose weights stay in the file, which the system reads as they are needed.

    Weights that modules share are there once. Nothing ever trains on in such a file.
    """
    tensors, facts = _read(folder, copies=False)
    with init_on_meta():
        model = build_model(experiment.model, data_shape(experiment))
    own, found = dict(model.named_parameters()), _part(tensors, MODEL)
    if {name: parameter.shape for name, parameter in own.items()} != {
        k: v.shape for k, v in found.items()
    }:
        raise CheckpointDamaged(
            "The checkpoint {name} belongs to a model with another shape.", name=folder.name
        )
    by_meta = {id(parameter): nn.Parameter(found[name]) for name, parameter in own.items()}
    everywhere = model.named_parameters(remove_duplicate=False)
    weights = {name: by_meta[id(parameter)] for name, parameter in everywhere}
    model.load_state_dict(weights, assign=True, strict=False)  # buffers are not in the file
    return model.eval(), facts.step


def _read(folder: Path, *, copies: bool = True) -> tuple[dict[str, Tensor], CheckpointFacts]:
    path = folder / FILE
    try:
        with open_tensors(path, "pt") as file:
            facts = facts_of(file.metadata())
            # clones: what is read is a window into the file, which Windows could not replace then
            names = list(file.keys())
            if not copies:
                return {name: file.get_tensor(name) for name in names}, facts
            return {name: file.get_tensor(name).clone() for name in names}, facts
    except FileNotFoundError:
        raise CheckpointDamaged("There is no checkpoint in {name}.", name=folder.name) from None
    except Unreadable as error:
        raise CheckpointDamaged(
            "The checkpoint {name} is damaged and cannot be read ({error}).",
            name=folder.name,
            error=error.sentence,
        ) from None


def _load_weights(model: Model, weights: dict[str, Tensor], folder: Path) -> None:
    with _of_this_shape(folder), torch.no_grad():
        model.load_state_dict(weights)


@contextmanager
def _of_this_shape(folder: Path) -> Iterator[None]:
    try:
        yield
    except RuntimeError:
        raise CheckpointDamaged(
            "The checkpoint {name} belongs to a model with another shape.", name=folder.name
        ) from None


def _eval_weights(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights that count: the average where there is one."""
    return _part(tensors, _AVERAGE) or _part(tensors, MODEL)


def _part(tensors: dict[str, Tensor], head: str) -> dict[str, Tensor]:
    return {key.removeprefix(head): value for key, value in tensors.items() if key.startswith(head)}
