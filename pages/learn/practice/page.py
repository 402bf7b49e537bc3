"""Train it well: the article on good practice and on what makes training fast."""

from __future__ import annotations

from pages.app import article
from pages.app.article import Figures
from pages.learn.practice import speed, steps

FIGURES: Figures = {
    "progress": steps.progress,
    "split": steps.split,
    "train": steps.train,
    "early": steps.early,
    "augment": steps.augment,
    "errors": steps.errors,
    "save": steps.save,
    "test": steps.test,
    "speed": speed.speed,
}
QUESTIONS = ("choosing", "precision")
GUESSES = ("weakest",)
"""The questions that figures ask before they show the answer."""

if __name__ == "__main__":
    article.draw("practice", FIGURES)
