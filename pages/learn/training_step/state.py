"""State of the page: its link, the model and the steps taken; trainers are cached.

A session keeps only the learning rates of its steps: a trainer follows from a model and those
rates, so undo is one rate less. All sessions share the trainers, which one at a time uses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from pages.app.address import parameters
from pages.app.settings.model_choice import Chosen
from pages.i18n import N_
from tfm_core import byte_cache
from tfm_core.choices.config import Experiment, from_json, to_json
from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import own_name, own_names
from tfm_core.inspect.attention import trained

if TYPE_CHECKING:
    from tfm_core.inspect.training_step.step import StepTaken
    from tfm_core.training.loop import Trainer

MAX_STEPS = 30
_RATES = "training-step-path"
_lock = threading.RLock()  # taken before the cache's own lock, against deadlocks
T = TypeVar("T")
STAGE = parameters.named(
    "stage",
    {
        "batch": N_("Batch and forward"),
        "loss": N_("Loss"),
        "backward": N_("Backward"),
        "update": N_("Update"),
        "after": N_("After it"),
        "ways": N_("Module or function"),
        "mistakes": N_("Famous mistakes"),
    },
    key="training-step-stage",
)
FIRST, LAST = "first", "last"
WEIGHTS = parameters.named(
    "weights",
    {FIRST: N_("First weights"), LAST: N_("Last checkpoint")},
    key="training-step-weights",
)


@dataclass(frozen=True, slots=True)
class ModelAtStep:
    """A model, at a checkpoint or new, and the learning rates of the steps taken from there."""

    text: str
    checkpoint: str
    mark: int
    rates: tuple[float, ...] = ()

    @property
    def subject(self) -> str:
        return f"{self.checkpoint} {self.mark} {self.text}"


def own_names_of(model_at: ModelAtStep) -> Callable[[str], str]:
    """Return a function from a parameter's name in the engine to its name in the family."""
    experiment = from_json(model_at.text)
    names = own_names(experiment.model, data_shape(experiment))
    return lambda path: own_name(path, names) or path


def model_at_step(chosen: Chosen, *, is_last: bool) -> ModelAtStep:
    """Return the session's steps with a model that can be trained.

    is_last: from the run's last checkpoint, if it has one, instead of its first weights.
    """
    assert chosen.experiment is not None
    text, checkpoint, mark = to_json(chosen.experiment), "", 0
    if is_last and chosen.run is not None and chosen.run.has_checkpoint:
        checkpoint = str(chosen.run.folder / "checkpoints" / "last")
        mark = trained.checkpoint_mark(chosen.run)
    model_at = ModelAtStep(text, checkpoint, mark)
    return replace(model_at, rates=tuple(_taken().get(model_at.subject, ())))


def push(model_at: ModelAtStep, rate: float) -> None:
    _taken()[model_at.subject] = [*model_at.rates, rate][:MAX_STEPS]


def pop(model_at: ModelAtStep) -> None:
    _taken()[model_at.subject] = list(model_at.rates[:-1])


def clear(model_at: ModelAtStep) -> None:
    """Drop all steps of the session."""
    _taken().pop(model_at.subject, None)


def with_trainer(model_at: ModelAtStep, work: Callable[[Trainer], T]) -> T:
    """Return ``work(trainer)``. Raises ValueError, in a sentence, if there can be no trainer."""
    with _lock:
        return work(_at(model_at)[0])


def last_step(model_at: ModelAtStep) -> StepTaken:
    """Return the step last taken from a model that has some rates. Raises ValueError."""
    with _lock:
        step = _at(model_at)[1]
    assert step is not None
    return step


def after(model_at: ModelAtStep, rate: float) -> ModelAtStep:
    return replace(model_at, rates=(*model_at.rates, rate))


def cached(
    name: str, model_at: ModelAtStep, key: tuple[Any, ...], work: Callable[[Trainer], T]
) -> T:
    """Return the result of ``work``, cached by model and key."""
    with _lock:
        whole = ("training step", name, model_at, key)
        return byte_cache.SHARED.get(whole, lambda: work(_at(model_at)[0]))


@byte_cache.cached
def _at(model_at: ModelAtStep) -> tuple[Trainer, StepTaken | None]:
    from tfm_core.inspect.training_step.step import start, take

    if not model_at.rates:
        folder = Path(model_at.checkpoint) if model_at.checkpoint else None
        return start(Experiment.model_validate_json(model_at.text), folder), None
    before = replace(model_at, rates=model_at.rates[:-1])
    return take(_at(before)[0], model_at.rates[-1])


def _taken() -> dict[str, list[float]]:
    rates: dict[str, list[float]] = st.session_state.setdefault(_RATES, {})
    return rates
