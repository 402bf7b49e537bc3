"""Where the step stands: which model, which steps were taken; trainers are made once for all.

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

from pages.ui.model_choice import Chosen
from tfm_core.config import Experiment, to_json
from tfm_core.inspect.attention import trained

if TYPE_CHECKING:
    from tfm_core.inspect.training_step.step import Taken
    from tfm_core.training.loop import Trainer

MOST_STEPS = 30
_RATES = "training-step-path"
_lock = threading.RLock()  # taken before any cache's own, so that they cannot wait for each other
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """A model, at a checkpoint or new, and the learning rates of the steps taken from there."""

    text: str
    checkpoint: str
    mark: int
    rates: tuple[float, ...] = ()

    @property
    def subject(self) -> str:
        """What tells one model from another."""
        return f"{self.checkpoint} {self.mark} {self.text}"


def place_of(chosen: Chosen) -> Place:
    """Return where the session stands with a model that can be trained."""
    assert chosen.experiment is not None
    text, checkpoint, mark = to_json(chosen.experiment), "", 0
    if chosen.run is not None and chosen.run.has_checkpoint:
        checkpoint = str(chosen.run.folder / "checkpoints" / "last")
        mark = trained.checkpoint_mark(chosen.run)
    place = Place(text, checkpoint, mark)
    return Place(text, checkpoint, mark, tuple(_taken().get(place.subject, ())))


def push(place: Place, rate: float) -> None:
    """Take a step."""
    _taken()[place.subject] = [*place.rates, rate][:MOST_STEPS]


def pop(place: Place) -> None:
    """Undo the last step."""
    _taken()[place.subject] = list(place.rates[:-1])


def clear(place: Place) -> None:
    """Go back to where the model began."""
    _taken().pop(place.subject, None)


def with_trainer(place: Place, work: Callable[[Trainer], T]) -> T:
    """Return what a piece of work finds out about the trainer at a place.

    Raises ValueError, in a sentence, where there can be none.
    """
    with _lock:
        return work(_at(place)[0])


def taken(place: Place) -> Taken:
    """Return the last step taken at a place; the place has some. Raises ValueError."""
    with _lock:
        found = _at(place)[1]
    assert found is not None
    return found


def after(place: Place, rate: float) -> Place:
    """Return the place one more step on."""
    return Place(place.text, place.checkpoint, place.mark, (*place.rates, rate))


def kept(name: str, place: Place, key: tuple[Any, ...], work: Callable[[Trainer], T]) -> T:
    """Return what a piece of work found, worked out once for a place and a key."""
    with _lock:
        found: T = _kept(name, place, key, work)
    return found


@st.cache_resource(show_spinner=False, max_entries=24)
def _kept(name: str, place: Place, key: tuple[Any, ...], _work: Callable[[Trainer], Any]) -> Any:
    return _work(_at(place)[0])


@st.cache_resource(show_spinner=False, max_entries=48)
def _at(place: Place) -> tuple[Trainer, Taken | None]:
    from tfm_core.inspect.training_step.step import start, take

    if not place.rates:
        folder = Path(place.checkpoint) if place.checkpoint else None
        return start(Experiment.model_validate_json(place.text), folder), None
    before = Place(place.text, place.checkpoint, place.mark, place.rates[:-1])
    return take(_at(before)[0], place.rates[-1])


def _taken() -> dict[str, list[float]]:
    rates: dict[str, list[float]] = st.session_state.setdefault(_RATES, {})
    return rates
