"""Words become numbers: the article on tokens, ids, vectors and tensors."""

from __future__ import annotations

from pages.app import article
from pages.app.article import Figures
from pages.learn.numbers import tensors, words

FIGURES: Figures = {
    "tokens": words.tokens,
    "bytes": words.utf8,
    "batch": words.batch,
    "embeddings": words.lookup,
    "likeness": words.likeness,
    "moving": words.moving,
    "patches": words.patches,
    "operation": tensors.operation,
    "errors": tensors.errors,
    "numpy": tensors.numpy,
}
QUESTIONS = ("compound", "padding", "strides", "view")

if __name__ == "__main__":
    article.draw("numbers", FIGURES)
