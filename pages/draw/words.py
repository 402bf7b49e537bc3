"""Sentences on what a run reads in a drawing."""

from __future__ import annotations

from collections.abc import Callable

from pages.i18n import _
from pages.ui import show
from tfm_core.inspect.progress.pictures import PictureHistory, right_since

Epochs = Callable[[int], float] | None
"""Epochs by step; None if unknown."""

SURE = 0.5
"""The probability below which the model counts as unsure."""


def answer(readings: PictureHistory, classes: tuple[str, ...], epochs: Epochs) -> str:
    steps, shares, *_maps = readings
    best = int(shares[-1].argmax())
    share = float(shares[-1, best])
    if share < SURE:
        digit, sure = classes[best], show.percent(share)
        return _("Not sure: perhaps a {digit} ({share}).", digit=digit, share=sure)
    since = right_since((steps, shares), best)
    assert since is not None
    if len(steps) == 1:
        return _("Reads a {digit}; no earlier weights were saved.", digit=classes[best])
    if since == steps[0]:
        return _("Reads a {digit}, but so do random weights.", digit=classes[best])
    step = step_words(since, epochs)
    return _("Reads a {digit} from step {step} on.", digit=classes[best], step=step)


def meant(
    readings: PictureHistory, index: int, classes: tuple[str, ...], epochs: Epochs
) -> tuple[int | None, str]:
    """Return the index since when a class is read (or None), and a sentence on it."""
    steps, shares, *_maps = readings
    since = right_since((steps, shares), index)
    digit = classes[index]
    if since is None:
        return None, _missed(readings, index, classes, epochs)
    at = steps.index(since)
    if len(steps) == 1:
        return at, _("Right: a {digit}; no earlier weights were saved.", digit=digit)
    if at == 0:
        return at, _("Right: a {digit}, but so are random weights.", digit=digit)
    step = step_words(since, epochs)
    return at, _("Right from step {step} on: a {digit}.", digit=digit, step=step)


def _missed(readings: PictureHistory, index: int, classes: tuple[str, ...], epochs: Epochs) -> str:
    steps, shares, *_maps = readings
    best, at = int(shares[-1].argmax()), int(shares[:, index].argmax())
    values = {
        "best": classes[best],
        "digit": classes[index],
        "share": show.percent(float(shares[at, index])),
        "step": step_words(steps[at], epochs),
    }
    if (shares.argmax(-1) == index).any():
        return _(
            "Reads a {best}, not a {digit}; at step {step} it read a {digit} ({share}).", **values
        )
    return _("Reads a {best}, never a {digit}: at most {share}, at step {step}.", **values)


def step_words(step: int, epochs: Epochs) -> str:
    if epochs is None:
        return f"{step:,}"
    return _("{step} (epoch {epoch})", step=f"{step:,}", epoch=f"{epochs(step):.1f}")
