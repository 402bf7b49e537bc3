"""What a run makes of a drawing, in sentences."""

from __future__ import annotations

from collections.abc import Callable

from pages.i18n import _
from pages.ui import show
from tfm_core.inspect.progress.pictures import Array, PictureHistory, right_since

Epochs = Callable[[int], float] | None
"""How often the training set was read in so many steps; None where nobody knows."""

SURE = 0.5
"""The probability below which the model is said to be unsure."""


def answer(found: PictureHistory, classes: tuple[str, ...], epochs: Epochs) -> str:
    """Say what the last weights read, how surely, and from which step on."""
    best = int(found.shares[-1].argmax())
    share = float(found.shares[-1, best])
    if share < SURE:
        words = _("It is not sure: perhaps a {digit}, with {share}.")
        return words.format(digit=classes[best], share=show.percent(share))
    since = right_since((found.steps, found.shares), best)
    assert since is not None
    if since == found.steps[0] and len(found.steps) > 1:
        words = _("It reads a {digit}, but so do random weights: luck.")
    elif len(found.steps) == 1:
        words = _("It reads a {digit}; no weights of earlier were kept.")
    else:
        words = _("It reads a {digit}, from {step} on.")
    return words.format(digit=classes[best], step=step_words(since, epochs))


def meant(
    found: PictureHistory, index: int, classes: tuple[str, ...], epochs: Epochs
) -> tuple[int | None, str]:
    """Say since when a class is read that was meant, and return the index of that time or None."""
    since = right_since((found.steps, found.shares), index)
    digit = classes[index]
    if since is None:
        return None, _missed(found, index, classes, epochs)
    at = found.steps.index(since)
    if len(found.steps) == 1:
        words = _("Right: it reads a {digit}; no earlier weights were saved.")
    elif at == 0:
        words = _("Right: it reads a {digit}, but so do random weights: luck.")
    else:
        words = _("It got this right from {step} on: a {digit}.")
    return at, words.format(digit=digit, step=step_words(since, epochs))


def _missed(found: PictureHistory, index: int, classes: tuple[str, ...], epochs: Epochs) -> str:
    """Say that the last weights read another class, and when they came nearest."""
    shares: Array = found.shares
    best, at = int(shares[-1].argmax()), int(shares[:, index].argmax())
    was_right = bool((shares.argmax(-1) == index).any())
    words = (
        _("It reads a {best}, not a {digit}; it did read a {digit} at {step}, with {share}.")
        if was_right
        else _("It reads a {best}, never a {digit}: at most {share}, at {step}.")
    )
    return words.format(
        best=classes[best],
        digit=classes[index],
        share=show.percent(float(shares[at, index])),
        step=step_words(found.steps[at], epochs),
    )


def step_words(step: int, epochs: Epochs) -> str:
    """Return a step as a sentence says it, with its epoch where that is known."""
    if epochs is None:
        return _("step {step}", step=f"{step:,}")
    words = _("step {step} (epoch {epoch})")
    return words.format(step=f"{step:,}", epoch=f"{epochs(step):.1f}")
