"""How a run came out beside the right way: worse, slower, fooled, or no different.

Two shares are told apart where they differ by more than two standard errors and by a point at
least; two speeds where one took half as long again, and a validation longer. Whatever is claimed is
of this pair of runs: other seeds are asked by ``compare.spread``.
"""

from __future__ import annotations

import itertools
import math

from tfm_core.inspect.conclusions import tells_apart
from tfm_core.inspect.experiments.demonstration import Finding, Kind
from tfm_core.inspect.experiments.result import Result
from tfm_core.sentences import N_, Paragraph, Sentence, joined

MIN = 0.01
"""Of a share: less is no difference that anybody would care for."""
NEARLY = 0.9
"""Of the lower of two final accuracies: who comes there first learned faster."""
TIMES = 1.5
"""How much longer it takes whom a sentence calls slower."""
SURER = 0.02
"""Of mean confidence, between two that are told apart."""
ROUGHER = 2.0
"""Times the largest gradient, between two that are told apart."""
SHARPER = 1.15
"""Times the largest weight, between two that are told apart."""


def usual(first: Result, second: Result) -> Finding:
    """Say who answers more, and where none does, who was there sooner."""
    ended = _ended(first, second)
    if ended is not None:
        return ended
    a, b = _right(first), _right(second)
    speed = _speed(first, second)
    n = min(first.n_unseen, second.n_unseen) or 1
    if abs(b - a) >= MIN and tells_apart(max(a, b), min(a, b), n):
        said = _figures(first, second)
        kind: Kind = "worse" if b < a else "better"
        lead = (
            N_("{figures}, {gap:.1f} points less.", figures=said, gap=100 * (a - b))
            if b < a
            else N_("{figures}, {gap:.1f} points more.", figures=said, gap=100 * (b - a))
        )
        return Finding(kind, joined(lead, speed[1]) if speed is not None else lead)
    if speed is not None and speed[0] != "same":
        lead = N_("Both end alike: {figures}.", figures=_figures(first, second))
        return Finding(speed[0], joined(lead, speed[1]))
    lead = N_("No difference in this run: {figures}.", figures=_figures(first, second))
    return Finding("same", joined(lead, speed[1]) if speed is not None else lead)


def fooled(first: Result, second: Result) -> Finding:
    """Say whether the second run is right only while the truth is laid before it."""
    ended = _ended(first, second)
    if ended is not None or first.written is None or second.written is None:
        return ended or usual(first, second)
    a, b = _right(first), _right(second)
    own = second.written
    values = {
        "first": first.label, "second": second.label, "a": a, "b": b,
        "own_a": first.written.share, "own_b": own.share, "n": own.n,
    }  # fmt: skip
    if b - own.share >= MIN and tells_apart(b, own.share, own.n):
        if tells_apart(a, b, max(1, second.n_unseen)):
            told = Paragraph("findings/fooled-second-differs", **values)
        else:
            told = Paragraph("findings/fooled-second-perfect", **values)
        return Finding(
            "fooled",
            joined(
                told,
                Paragraph("findings/fooled-generates", **values),
            ),
        )
    found = usual(first, second)
    alike = Paragraph("findings/generates-alike", **values)
    return Finding(found.kind, joined(found.sentence, alike))


def unordered(first: Result, second: Result) -> Finding:
    """Say whether the second run writes the right tokens, but in another order."""
    found = usual(first, second)
    own = second.written
    if found.kind != "worse" or own is None:
        return found
    values = {"second": second.label, "tokens": own.tokens, "share": own.share, "n": own.n}
    if own.tokens < NEARLY or own.tokens - own.share < MIN:
        more = Paragraph("findings/more-than-order", **values)
        return Finding(found.kind, joined(found.sentence, more))
    more = Paragraph("findings/unordered", **values)
    return Finding("unordered", joined(found.sentence, more))


def smoothed(first: Result, second: Result) -> Finding:
    """Say what label smoothing did to answers and to how sure they are."""
    found = usual(first, second)
    sure, unsure = first.confidence, second.confidence
    if sure is None or unsure is None:
        return found
    values = {"first": first.label, "second": second.label, "a": sure, "b": unsure}
    losses = first.loss, second.loss
    if sure - unsure < SURER:
        more = Paragraph("findings/as-confident", **values)
        return Finding(found.kind, joined(found.sentence, more))
    more = N_("“{second}” is less confident: {b:.1%} on average, against {a:.1%}.", **values)
    parts: list[Sentence] = [found.sentence, more]
    if losses[0] is not None and losses[1] is not None and losses[1] > losses[0]:
        parts.append(Paragraph("findings/higher-loss", a=losses[0], b=losses[1]))
    return Finding("unsure" if found.kind in ("same", "slower") else found.kind, joined(*parts))


def sharpened(first: Result, second: Result) -> Finding:
    """Say what another scale did to attention before the first update, and what came of it."""
    found = usual(first, second)
    a, b = first.sharpness, second.sharpness
    if a is None or b is None:
        return found
    values = {"first": first.label, "second": second.label, "a": a, "b": b}
    if b > SHARPER * a:
        look = Paragraph("findings/sharper", **values)
    elif a > SHARPER * b:
        look = Paragraph("findings/flatter", **values)
    else:
        look = Paragraph("findings/as-sharp", **values)
    return Finding(found.kind, joined(look, found.sentence))


def roughened(first: Result, second: Result) -> Finding:
    """Say who answers more, and how large the gradients became on the way."""
    found = usual(first, second)
    a, b = first.largest_gradient, second.largest_gradient
    if a is None or b is None or second.diverged is not None or first.diverged is not None:
        return found
    values = {"first": first.label, "second": second.label, "a": a, "b": b}
    if b < ROUGHER * a:
        more = N_(
            "The largest gradient of “{second}” was no larger: {b:.1f} against {a:.1f}.", **values
        )
        return Finding(found.kind, joined(found.sentence, more))
    more = Paragraph("findings/rougher", times=b / a, **values)
    return Finding("rougher" if found.kind == "same" else found.kind, joined(found.sentence, more))


def twice_squashed(first: Result, second: Result) -> Finding:
    """Say how far a loss of probabilities got, which were taken for logits."""
    found = usual(first, second)
    if second.guessing is None or second.training_loss is None or second.diverged is not None:
        return found
    lowest = lowest_of_probabilities(round(math.exp(second.guessing)))
    more = Paragraph(
        "findings/twice-squashed",
        second=second.label,
        b=second.training_loss,
        lowest=lowest,
        guessing=second.guessing,
    )
    return Finding(found.kind, joined(found.sentence, more))


def lowest_of_probabilities(n_classes: int) -> float:
    """Return the cross-entropy of a perfect answer whose probabilities are taken for logits."""
    return math.log(math.e + n_classes - 1) - 1


def _ended(first: Result, second: Result) -> Finding | None:
    """Return a finding where one of the runs, or both, have no end to be compared."""
    values = {"first": first.label, "second": second.label}
    if first.diverged is None and second.diverged is None:
        return None
    if first.diverged is not None and second.diverged is not None:
        return Finding("same", N_("Both diverged: {why}", why=second.diverged))
    if second.diverged is not None:
        right = first.right
        end = "" if right is None else N_("“{first}” ends with {a:.1%} right.", a=right, **values)
        lead = N_("“{second}” diverged. {why}", why=second.diverged, **values)
        return Finding("diverged", joined(lead, end) if end else lead)
    return Finding("saved", N_("“{first}” diverged; “{second}” did not.", **values))


def _right(result: Result) -> float:
    return 0.0 if result.right is None else result.right


def _figures(first: Result, second: Result) -> Sentence:
    values = {"first": first.label, "second": second.label, "a": _right(first), "b": _right(second)}
    if first.wholes is None or second.wholes is None:
        return N_("“{second}” gets {b:.1%} right, “{first}” {a:.1%}", **values)
    return N_("“{second}” gets {b:.1%} of unseen sequences right, “{first}” {a:.1%}", **values)


def _speed(first: Result, second: Result) -> tuple[Kind, Sentence] | None:
    """Return who came nearly as far sooner; None where that is not known."""
    if not first.validations or not second.validations:
        return None
    ends = (first.validations[-1][1], second.validations[-1][1])
    share = NEARLY * min(ends)
    a, b = first.first_step(share), second.first_step(share)
    if a is None or b is None:
        return None
    values = {"first": first.label, "second": second.label, "a": a, "b": b, "share": share}
    every = _between(first)
    if b >= TIMES * a and b - a > every:
        return "slower", N_(
            "It reached {share:.0%} of tokens at step {b:,}, “{first}” at step {a:,}.", **values
        )
    if a >= TIMES * b and a - b > every:
        return "faster", N_(
            "It reached {share:.0%} of tokens at step {b:,}, “{first}” only at step {a:,}.",
            **values,
        )
    return "same", N_("They reached {share:.0%} of tokens at steps {b:,} and {a:,}.", **values)


def _between(result: Result) -> int:
    """Return the most steps between two validations, below which no time is known."""
    steps = [step for step, _right in result.validations]
    return max((b - a for a, b in itertools.pairwise(steps)), default=0)
