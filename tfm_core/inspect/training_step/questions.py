"""Questions about one training step, answered by the step itself."""

from __future__ import annotations

import math

from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.training_step.step import StepTaken
from tfm_core.sentences import N_

SAME = 1e-6
"""A loss that changes by less counts as the same."""


def about_guessing(n: int) -> Question:
    """Ask for the loss of a model that finds all of n classes equally likely."""
    even = f"{math.log(n):.2f}"
    return choice_question(
        N_("If all {n:,} classes were equally likely, what would the loss be?", n=n),
        even,
        {
            f"{1 / n:.2g}": N_("That is the probability of each; the loss is −ln of it."),
            f"{math.log2(n):.2f}": N_("That is in bits; the loss is in nats, with ln."),
            f"{n:,}": N_("That is the perplexity, exp(loss)."),
            "0": N_("Only a model that gives the right class probability 1 has loss 0."),
        },
        N_("−ln(1/{n}) = ln {n}: the line of guessing on every loss curve.", n=n),
    )


def about_step(taken: StepTaken) -> Question:
    """Ask what a step does to the loss of its own batch."""
    change = taken.loss_after - taken.loss_before
    falls, same, rises = N_("It falls"), N_("It stays the same"), N_("It rises")
    answer = same if abs(change) < SAME else falls if change < 0 else rises
    return choice_question(
        N_(
            "One step with learning rate {rate:.3g}: what happens to this batch's loss?",
            rate=taken.rate,
        ),
        answer,
        {
            falls: N_("A step follows the slope downhill, but this one goes too far."),
            same: N_("Every weight with a gradient moves, so the loss changes."),
            rises: N_("The step goes against the gradient, and here it is short enough."),
        },
        N_("From {one:.4g} to {other:.4g}.", one=taken.loss_before, other=taken.loss_after),
    )
