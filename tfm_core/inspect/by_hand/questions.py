"""One question for each stage of attention by hand, answered by the numbers on the page."""

from __future__ import annotations

import numpy as np

from tfm_core.inspect.by_hand.attention import Attended, Floats
from tfm_core.inspect.walk.steps import Question, number_question


def about_scale(scaled: Attended, plain: Attended, words: tuple[str, ...], query: int) -> Question:
    """Ask what the weight of a word on its own strongest key becomes without the scale."""
    key = int(scaled.weights[query].argmax())
    before, after = float(scaled.weights[query, key]), float(plain.weights[query, key])
    even = 1 / max(1, int(scaled.allowed[query].sum()))
    others = (before, before / scaled.scale, min(1.0, before * scaled.scale), even)
    options = _options(after, others)
    return Question(
        f"“{words[query]}” attends to “{words[key]}” with {before:.2f}. Which weight is it when "
        f"the scores are not divided by √{scaled.query.shape[1]}?",
        f"{after:.2f}",
        "Larger scores lie further apart, so the softmax gives more to the largest: see below.",
        options,
    )


def about_symmetry(attended: Attended, words: tuple[str, ...]) -> Question:
    """Ask whether two words score each other alike."""
    is_alike = bool(np.allclose(attended.products, attended.products.T, atol=1e-5))
    first, last = words[0], words[-1]
    one, other = float(attended.products[0, -1]), float(attended.products[-1, 0])
    return Question(
        f"With projections, is the score of “{first}” asking “{last}” the same as that of "
        f"“{last}” asking “{first}”?",
        "Yes, QKᵀ is symmetric" if is_alike else "No, asking is not being asked",
        f"One is {one:.4f}, the other {other:.4f}. With Q = K they had to be equal; two matrices "
        "let a word look for something else than it offers.",
        ("No, asking is not being asked", "Yes, QKᵀ is symmetric"),
    )


def about_heads(vectors: Floats, n_heads: int) -> Question:
    """Ask how long the query of one head is."""
    d_model = vectors.shape[1]
    return number_question(
        f"The vectors have {d_model} numbers and there are {n_heads} heads. How many numbers has "
        "the query of one word in one head?",
        d_model // n_heads,
        f"d_head = d_model / H = {d_model} / {n_heads}. The scale becomes √{d_model // n_heads}, "
        f"not √{d_model}.",
    )


def about_size(vectors: Floats, n_heads: int) -> Question:
    """Ask how many numbers the one large projection holds."""
    d_model = vectors.shape[1]
    return number_question(
        f"How many numbers are in the one large matrix that makes Q, K and V of all {n_heads} "
        "heads (without biases)?",
        3 * d_model**2,
        f"Three matrices of {d_model} × {d_model}: 3 · {d_model}² = {3 * d_model**2}. The number "
        "of heads does not matter: the list of small ones holds as many.",
    )


def _options(right: float, others: tuple[float, ...]) -> tuple[str, ...]:
    """Return the right answer and others with two digits, each once, in order of size."""
    return tuple(sorted({f"{value:.2f}" for value in (right, *others)}))
