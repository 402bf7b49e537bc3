"""What the address of each page may hold, by the name of the page and then of the parameter."""

from collections.abc import Iterator
from typing import Any

from pages.architecture import link as architecture
from pages.attention import selection_link
from pages.before import link as before
from pages.by_hand import link as by_hand
from pages.classroom import link as classroom
from pages.compare import link as compare
from pages.draw import board
from pages.encoders import run as encoders
from pages.experiments import opened
from pages.find_the_bug import pair
from pages.gpt import run as gpt
from pages.knockouts import link as knockouts
from pages.masks import controls as masks
from pages.mistakes import link as mistakes
from pages.own_data import state as own_data
from pages.positions import link as positions
from pages.practice import steps as practice
from pages.speed import controls as speed
from pages.sweeps import choice as sweeps
from pages.tensors import controls as tensors
from pages.training_step import state as training_step
from pages.translate import link as translate
from pages.ui.address.parameters import Parameter
from pages.ui.settings import model_choice, names_choice, your_notebook
from pages.walk import link as walk
from pages.words import link as words

_MODEL = (model_choice.SHOW, your_notebook.TEXT)
_SIZED_MODEL = (
    *_MODEL, model_choice.SRC_VOCABULARY, model_choice.TGT_VOCABULARY, model_choice.SRC_LEN,
    model_choice.TGT_LEN, names_choice.NAMES,
)  # fmt: skip


def _within(value: object) -> Iterator[Parameter[Any]]:
    """Yield the parameters that a module, a table or a list holds."""
    if isinstance(value, Parameter):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _within(one)
    elif isinstance(value, tuple):
        for one in value:
            yield from _within(one)


def _of(*holders: object) -> dict[str, Parameter[Any]]:
    found = {}
    for holder in holders:
        for one in _within(vars(holder) if hasattr(holder, "__file__") else holder):
            found[one.query] = one
    return found


PARAMETERS: dict[str, dict[str, Parameter[Any]]] = {
    "class": _of(classroom),
    "attention": _of(selection_link),
    "translate": _of(translate),
    "draw": _of(board),
    "mistakes": _of(mistakes),
    "knockouts": _of(knockouts),
    "experiments": _of(opened),
    "find-the-bug": _of(pair),
    "compare": _of(compare),
    "sweeps": _of(sweeps),
    "own-data": _of(own_data),
    "build": _of(_SIZED_MODEL),
    "parameters": _of(architecture, _SIZED_MODEL, model_choice.VERSUS),
    "masks": _of(masks),
    "positions": _of(positions),
    "walk": _of(walk, _SIZED_MODEL),
    "words": _of(words),
    "tensors": _of(tensors),
    "by-hand": _of(by_hand),
    "before": _of(before),
    "encoders": _of(encoders),
    "gpt": _of(gpt),
    "training-step": _of(training_step, _MODEL),
    "speed": _of(speed, _MODEL),
    "practice": _of(practice),
}
