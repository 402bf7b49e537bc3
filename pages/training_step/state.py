"""State of the page: the model and the steps taken; trainers are cached.

A session keeps only the learning rates of the steps that it took. A trainer is what follows from a
model and those rates, so undo is one rate less. The trainers are shared by all sessions, and used
by one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from pages.ui.settings.model_choice import Chosen
from tfm_core import byte_cache
from tfm_core.config import Experiment, from_json, to_json
from tfm_core.data.shape import data_shape
from tfm_core.facts.parameter_table import own_name, own_names
from tfm_core.inspect.attention import trained

if TYPE_CHECKING:
    from tfm_core.inspect.training_step.step import StepTaken
    from tfm_core.training.loop import Trainer

MAX_STEPS = 30
_RATES = "training-step-path"
_lock = threading.RLock()  # taken before any cache's own, so that they cannot wait for each other
T = TypeVar("T")


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

    is_last: from the run's last checkpoint, where it has one, and not from its first weights.
    """
    assert chosen.experiment is not None
    text, checkpoint, mark = to_json(chosen.experiment), "", 0
    if is_last and chosen.run is not None and chosen.run.has_checkpoint:
        checkpoint = str(chosen.run.folder / "checkpoints" / "last")
        mark = trained.checkpoint_mark(chosen.run)
    model_at = ModelAtStep(text, checkpoint, mark)
    return ModelAtStep(text, checkpoint, mark, tuple(_taken().get(model_at.subject, ())))


def push(model_at: ModelAtStep, rate: float) -> None:
    _taken()[model_at.subject] = [*model_at.rates, rate][:MAX_STEPS]


def pop(model_at: ModelAtStep) -> None:
    _taken()[model_at.subject] = list(model_at.rates[:-1])


def clear(model_at: ModelAtStep) -> None:
    """Go back to where the model began."""
    _taken().pop(model_at.subject, None)


def with_trainer(model_at: ModelAtStep, work: Callable[[Trainer], T]) -> T:
    """Return ``work(trainer)``.

    Raises ValueError, in a sentence, where there can be none.
    """
    with _lock:
        return work(_at(model_at)[0])


def last_step(model_at: ModelAtStep) -> StepTaken:
    """Return the step last taken from a model that has some rates. Raises ValueError."""
    with _lock:
        step = _at(model_at)[1]
    assert step is not None
    return step


def after(model_at: ModelAtStep, rate: float) -> ModelAtStep:
    return ModelAtStep(model_at.text, model_at.checkpoint, model_at.mark, (*model_at.rates, rate))


def cached(
    name: str, model_at: ModelAtStep, key: tuple[Any, ...], work: Callable[[Trainer], T]
) -> T:
    """Return the result of ``work``, cached by model and key."""
    with _lock:
        whole = ("training step", name, model_at, key)
        return byte_cache.SHARED.get(whole, lambda: work(_at(model_at)[0]))


@byte_cache.kept
def _at(model_at: ModelAtStep) -> tuple[Trainer, StepTaken | None]:
    from tfm_core.inspect.training_step.step import start, take

    if not model_at.rates:
        folder = Path(model_at.checkpoint) if model_at.checkpoint else None
        return start(Experiment.model_validate_json(model_at.text), folder), None
    before = ModelAtStep(model_at.text, model_at.checkpoint, model_at.mark, model_at.rates[:-1])
    return take(_at(before)[0], model_at.rates[-1])


def _taken() -> dict[str, list[float]]:
    rates: dict[str, list[float]] = st.session_state.setdefault(_RATES, {})
    return rates
