"""Questions of good practice: some on the idea, most answered by the model and its numbers."""

from __future__ import annotations

import numpy as np

from tfm_core.inspect.compare.conclusions import wilson
from tfm_core.inspect.practice.evaluation import Evaluation
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.sentences import N_, percent


def about_choosing() -> Question:
    """Ask which split may decide when to stop."""
    return choice_question(
        N_("Which split decides when to stop?"),
        N_("Validation"),
        {
            N_("Training"): N_("Its loss falls by memorising too."),
            N_("Test"): N_("It can no longer test what it chose."),
        },
        N_("Choosing is what it is for."),
    )


def about_precision(n: int, share: float = 0.9) -> Question:
    """Ask how much narrower the interval of an accuracy gets with four times the examples."""
    one, four = (_width(round(share * size), size) for size in (n, 4 * n))
    ratio = one / four
    options = {1.0: N_("As wide"), 2.0: N_("Half as wide"), 4.0: N_("A quarter as wide")}
    nearest = min(options, key=lambda option: abs(option - ratio))
    return choice_question(
        N_("With four times as many pictures, how wide is the interval?"),
        options[nearest],
        {
            options[1.0]: N_("More pictures leave less to chance."),
            options[2.0]: N_("With so few pictures it shrinks at another rate."),
            options[4.0]: N_("It shrinks with the square root of their number."),
        },
        N_("From {one:.1f} to {four:.1f} points: √4 = 2.", one=100 * one, four=100 * four),
    )


def about_weakest(evaluated: Evaluation) -> Question:
    """Ask which class is wrong most often; every class that is as bad is right."""
    counts = evaluated.confusion()
    share = counts.diagonal() / np.maximum(counts.sum(1), 1)
    weakest = [int(index) for index in np.flatnonzero(share == share.min())]
    names = evaluated.class_names
    first = weakest[0]
    why = {
        name: N_("{n}: {share} right. Another is worse.", n=name, share=percent(float(share[i])))
        for i, name in enumerate(names)
        if i not in weakest
    }
    return Question(
        N_("Which class does it get wrong most often?"),
        names[first],
        N_(
            "{right} of {n} pictures of {name} are right.",
            right=int(counts[first, first]),
            n=int(counts[first].sum()),
            name=names[first],
        ),
        tuple(names),
        why,
        also=tuple(names[index] for index in weakest[1:]),
    )


def _width(right: int, n: int) -> float:
    low, high = wilson(right, n)
    return high - low
