"""Good practice: one guided way from a split to a number on the test set."""

from __future__ import annotations

from pages.ui import (
    practice_early,
    practice_errors,
    practice_save,
    practice_split,
    practice_steps,
    practice_test,
    practice_train,
    show,
)

VIEWS = {
    "split": practice_split.view,
    "train": practice_train.view,
    "early": practice_early.view,
    "augment": practice_train.augmentation,
    "errors": practice_errors.view,
    "save": practice_save.view,
    "test": practice_test.view,
}


def page() -> None:
    """Show one step at a time, with what is done; a link holds which."""
    show.header("practice")
    runs = practice_steps.runs()
    name = practice_steps.choose(runs)
    practice_steps.why(name)
    VIEWS[name](runs)
    practice_steps.mistake(name)


page()
