"""What a run makes of a drawing, in sentences."""

from __future__ import annotations

from collections.abc import Callable

from pages.i18n import _
from pages.ui import show
from tfm_core.inspect.looks import Array, Looks
from tfm_core.inspect.readings import read_from

Epochs = Callable[[int], float] | None
"""How often the training set was read in so many steps; None where nobody knows."""

SURE = 0.5
"""The probability below which the model is said to be unsure."""


def answer(found: Looks, classes: tuple[str, ...], epochs: Epochs) -> str:
    best = int(found.shares[-1].argmax())
    share = float(found.shares[-1, best])
    if share < SURE:
        digit, sure = classes[best], show.percent(share)
        return _("Not sure: perhaps a {digit} ({share}).", digit=digit, share=sure)
    since = read_from((found.steps, found.shares), best)
    assert since is not None
    if len(found.steps) == 1:
        return _("Reads a {digit}; no earlier weights were saved.", digit=classes[best])
    if since == found.steps[0]:
        return _("Reads a {digit}, but so do random weights.", digit=classes[best])
    step = step_words(since, epochs)
    return _("Reads a {digit} from {step} on.", digit=classes[best], step=step)


def meant(
    found: Looks, index: int, classes: tuple[str, ...], epochs: Epochs
) -> tuple[int | None, str]:
    """Return the index since when a class is read (or None), and a sentence on it."""
    since = read_from((found.steps, found.shares), index)
    digit = classes[index]
    if since is None:
        return None, _missed(found, index, classes, epochs)
    at = found.steps.index(since)
    if len(found.steps) == 1:
        return at, _("Right: a {digit}; no earlier weights were saved.", digit=digit)
    if at == 0:
        return at, _("Right: a {digit}, but so are random weights.", digit=digit)
    step = step_words(since, epochs)
    return at, _("Right from {step} on: a {digit}.", digit=digit, step=step)


def _missed(found: Looks, index: int, classes: tuple[str, ...], epochs: Epochs) -> str:
    shares: Array = found.shares
    best, at = int(shares[-1].argmax()), int(shares[:, index].argmax())
    values = {
        "best": classes[best],
        "digit": classes[index],
        "share": show.percent(float(shares[at, index])),
        "step": step_words(found.steps[at], epochs),
    }
    if (shares.argmax(-1) == index).any():
        return _("Reads a {best}, not a {digit}; at {step} it read a {digit} ({share}).", **values)
    return _("Reads a {best}, never a {digit}: at most {share}, at {step}.", **values)


def step_words(step: int, epochs: Epochs) -> str:
    if epochs is None:
        return _("step {step}", step=f"{step:,}")
    return _("step {step} (epoch {epoch})", step=f"{step:,}", epoch=f"{epochs(step):.1f}")
