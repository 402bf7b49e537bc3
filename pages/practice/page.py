"""Good practice: one guided way from a split to a number on the test set."""

from __future__ import annotations

from pages.practice import errors, save, split, steps, test, train
from pages.ui import show

VIEWS = {
    "split": split.view,
    "train": train.view,
    "early": train.early,
    "augment": train.augmentation,
    "errors": errors.view,
    "save": save.view,
    "test": test.view,
}


def page() -> None:
    """Show one step at a time, with what is done; a link holds which."""
    show.header("practice")
    runs = steps.runs()
    name = steps.choose(runs)
    steps.why(name)
    VIEWS[name](runs)
    steps.mistake(name)


page()
