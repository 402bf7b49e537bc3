"""Questions about attention before and after 2017, answered by runs and measured times."""

from __future__ import annotations

from collections.abc import Mapping

from tfm_core.inspect.questions import Question, choice_question
from tfm_core.sentences import N_, percent


def about_alignment(shares: Mapping[str, float]) -> Question | None:
    """Ask whose attention is most on the true words; None for fewer than two, or a tie.

    shares: model -> share of its attention on true source words.
    """
    order = sorted(shares, key=lambda name: -shares[name])
    if len(order) < 2 or shares[order[0]] == shares[order[1]]:
        return None
    why = {
        name: N_("Its share on the true words is {share}.", share=percent(shares[name]))
        for name in order
    }
    return choice_question(
        N_("Whose attention lies most on the true source words?"), order[0], why, why[order[0]]
    )


def about_growth(n: int, rnn: float, transformer: float) -> Question:
    """Ask how a recurrent step grows with length.

    n: how many times as long the sequences are. rnn, transformer: how many times as long the steps
    take, as measured.
    """
    answer = f"{rnn:.0f}"
    return choice_question(
        N_("Sequences {n} times as long: how many times as long is a step of the RNN?", n=n),
        answer,
        {
            f"{transformer:.0f}": N_("That is the Transformer: it computes all tokens at once."),
            "1": N_("Each further token is a further step in sequence."),
            f"{n * n}": N_("That would be pairs of tokens; the RNN visits each token once."),
        },
        N_("It computes token by token; the Transformer took {times:.0f}.", times=transformer),
    )
