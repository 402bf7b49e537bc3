"""How a run compares with the right way: worse, slower, fooled, or no different.

Two shares differ if they are more than two standard errors and a point apart; two speeds, if one
run took half as long again and a validation longer. A finding holds for this pair of runs; for
other seeds see ``compare.spread``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfm_core.inspect.compare.conclusions import tells_apart
from tfm_core.inspect.compare.spread import ACCURACY, LOSS, Paired, corrected, paired, sentence
from tfm_core.inspect.experiments.demonstration import ArmFinding, Demonstration, FindingKind
from tfm_core.inspect.experiments.result import Result
from tfm_core.sentences import N_, Paragraph, Sentence, joined, points

MIN = 0.01
"""The smallest difference of two shares that counts."""
NATS = 0.02
"""The smallest difference of two losses that counts."""
NEARLY = 0.9
"""Share of the lower final accuracy: the step at which a run reaches it measures its speed."""
TIMES = 1.5
"""How many times as long the slower of two runs takes."""
SURER = 0.02
"""The smallest difference in mean confidence that counts."""
ROUGHER = 2.0
"""How many times as large the larger of two largest gradients is."""
SHARPER = 1.15
"""How many times as large the larger of two largest weights is."""


def usual(first: Result, second: Result) -> ArmFinding:
    """Compare accuracies, and where they are equal, speeds."""
    ended = _ended(first, second)
    if ended is not None:
        return ended
    a, b = first.score or 0.0, second.score or 0.0
    speed, n = _speed(first, second), min(first.n_unseen, second.n_unseen) or 1
    if abs(b - a) >= MIN and tells_apart(max(a, b), min(a, b), n):
        kind: FindingKind = "worse" if b < a else "better"
        gap = abs(points(a, b))
        lead = (
            N_("That is {gap:.1f} points less.", gap=gap)
            if b < a
            else N_("That is {gap:.1f} points more.", gap=gap)
        )
        parts = [_figures(first, second), lead]
    elif speed is not None and speed.kind != "same":
        kind, parts = speed.kind, [N_("Both end alike."), _figures(first, second)]
    else:
        kind, parts = "same", [N_("No difference in this run."), _figures(first, second)]
    return ArmFinding(kind, joined(*parts, *([] if speed is None else [speed.sentence])))


def lower_loss(first: Result, second: Result) -> ArmFinding:
    """Compare the losses on unseen text, of whose tokens none is simply right or wrong."""
    ended = _ended(first, second)
    a, b = first.loss, second.loss
    if ended is not None or a is None or b is None:
        return ended or usual(first, second)
    kind: FindingKind = "same" if abs(b - a) < NATS else "better" if b < a else "worse"
    words = N_(
        "“{second}” has a loss of {b:.2f} on unseen text, “{first}” {a:.2f}.",
        **_labels(first, second),
        a=a,
        b=b,
    )
    return ArmFinding(kind, words)


def fooled(first: Result, second: Result) -> ArmFinding:
    """Say whether the second run is right only while it is given the true tokens so far."""
    ended = _ended(first, second)
    if ended is not None or first.written is None or second.written is None:
        return ended or usual(first, second)
    a, b, own = first.score or 0.0, second.score or 0.0, second.written
    values = _labels(first, second) | {"a": a, "b": b, "own_b": own.share, "n": own.n}
    if b - own.share < MIN or not tells_apart(b, own.share, own.n):
        return _with(usual(first, second), Paragraph("findings/generates-alike", **values))
    curves = (
        N_("Its training loss looks normal.")
        if tells_apart(a, b, max(1, second.n_unseen))
        else N_("Its curves look perfect.")
    )
    values["own_a"] = first.written.share
    given = Paragraph("findings/fooled-given", **values)
    return ArmFinding("fooled", joined(given, curves, Paragraph("findings/fooled-own", **values)))


def unordered(first: Result, second: Result) -> ArmFinding:
    """Say whether the second run writes the right tokens, but in another order."""
    found, own = usual(first, second), second.written
    if found.kind != "worse" or own is None:
        return found
    values: dict[str, Any] = {"second": second.label, "tokens": own.tokens}
    values |= {"share": own.share, "n": own.n}
    if own.tokens < NEARLY or own.tokens - own.share < MIN:
        return _with(found, Paragraph("findings/more-than-order", **values))
    return _with(found, Paragraph("findings/unordered", **values), kind="unordered")


def smoothed(first: Result, second: Result) -> ArmFinding:
    """Say what label smoothing did to answers and to confidence."""
    found = usual(first, second)
    a, b = first.confidence, second.confidence
    if a is None or b is None:
        return found
    values = _labels(first, second) | {"a": a, "b": b}
    if a - b < SURER:
        return _with(found, Paragraph("findings/as-confident", **values))
    more: Sentence = N_("“{second}” is less confident: {b:.1%} on average, not {a:.1%}.", **values)
    if first.loss is not None and second.loss is not None and second.loss > first.loss:
        more = joined(more, Paragraph("findings/higher-loss", a=first.loss, b=second.loss))
    return _with(found, more, kind="unsure" if found.kind in ("same", "slower") else None)


def sharpened(first: Result, second: Result) -> ArmFinding:
    """Say what another scale did to attention before the first update, and to the result."""
    found = usual(first, second)
    a, b = first.sharpness, second.sharpness
    if a is None or b is None:
        return found
    name = "sharper" if b > SHARPER * a else "flatter" if a > SHARPER * b else "as-sharp"
    start = Paragraph(f"findings/{name}", **_labels(first, second), a=a, b=b)
    return ArmFinding(found.kind, joined(start, found.sentence))


def roughened(first: Result, second: Result) -> ArmFinding:
    """Compare accuracies, and the largest gradients."""
    found = usual(first, second)
    a, b = first.largest_gradient, second.largest_gradient
    if a is None or b is None or second.diverged is not None or first.diverged is not None:
        return found
    values = _labels(first, second) | {"a": a, "b": b}
    if b < ROUGHER * a:
        return _with(
            found,
            N_(
                "The largest gradient of “{second}” was no larger: {b:.1f} against {a:.1f}.",
                **values,
            ),
        )
    more = Paragraph("findings/rougher", times=b / a, **values)
    return _with(found, more, kind="rougher" if found.kind == "same" else None)


def twice_squashed(first: Result, second: Result) -> ArmFinding:
    """Say how far a loss got that took probabilities for logits."""
    found = usual(first, second)
    if second.guessing is None or second.training_loss is None or second.diverged is not None:
        return found
    more = Paragraph(
        "findings/twice-squashed",
        second=second.label,
        b=second.training_loss,
        lowest=lowest_of_probabilities(round(math.exp(second.guessing))),
        guessing=second.guessing,
    )
    return _with(found, more)


def lowest_of_probabilities(n_classes: int) -> float:
    """Return the cross-entropy of a perfect answer whose probabilities are taken for logits."""
    return math.log(math.e + n_classes - 1) - 1


def _with(found: ArmFinding, more: Sentence, *, kind: FindingKind | None = None) -> ArmFinding:
    """Return a finding with one more sentence; kind: in place of its own."""
    return ArmFinding(kind or found.kind, joined(found.sentence, more))


def _labels(first: Result, second: Result) -> dict[str, Any]:
    return {"first": first.label, "second": second.label}


def _ended(first: Result, second: Result) -> ArmFinding | None:
    """Return a finding where one of the runs, or both, diverged."""
    values = _labels(first, second)
    if first.diverged is None and second.diverged is None:
        return None
    if second.diverged is None:
        return ArmFinding("saved", N_("“{first}” diverged; “{second}” did not.", **values))
    if first.diverged is not None:
        return ArmFinding("same", N_("Both diverged: {why}", why=second.diverged))
    found = ArmFinding("diverged", N_("“{second}” diverged. {why}", why=second.diverged, **values))
    if first.score is None:
        return found
    return _with(found, N_("“{first}” ends with {a:.1%} right.", a=first.score, **values))


def _figures(first: Result, second: Result) -> Sentence:
    values = _labels(first, second) | {"a": first.score or 0.0, "b": second.score or 0.0}
    if first.sequence_accuracy is None or second.sequence_accuracy is None:
        return N_("“{second}” gets {b:.1%} right, “{first}” {a:.1%}.", **values)
    return N_("“{second}” gets {b:.1%} of unseen sequences right, “{first}” {a:.1%}.", **values)


def _speed(first: Result, second: Result) -> ArmFinding | None:
    """Return which run reached nearly the same accuracy sooner; None where that is unknown."""
    if not first.validations or not second.validations:
        return None
    share = NEARLY * min(first.validations[-1][1], second.validations[-1][1])
    a, b = first.first_step(share), second.first_step(share)
    if a is None or b is None:
        return None
    values = _labels(first, second) | {"a": a, "b": b, "share": share}
    steps = [step for step, _accuracy in first.validations]
    interval = max((later - step for step, later in itertools.pairwise(steps)), default=0)
    if b >= TIMES * a and b - a > interval:
        words = N_(
            "It reached {share:.0%} of tokens at step {b:,}, “{first}” at step {a:,}.", **values
        )
        return ArmFinding("slower", words)
    if a >= TIMES * b and a - b > interval:
        words = N_(
            "It reached {share:.0%} of tokens at step {b:,}, “{first}” only at step {a:,}.",
            **values,
        )
        return ArmFinding("faster", words)
    words = N_("They reached {share:.0%} of tokens at steps {b:,} and {a:,}.", **values)
    return ArmFinding("same", words)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the runs showed.

    findings: of each other arm beside the first, with one seed. seeds: the same with several.
    is_expected: None without a finding.
    """

    findings: tuple[ArmFinding, ...] = ()
    seeds: tuple[Sentence, ...] = ()
    is_expected: bool | None = None

    @property
    def verdict(self) -> Sentence | None:
        """Return whether this was expected, in a sentence."""
        if self.is_expected is None:
            return None
        if self.is_expected:
            return N_("This was expected.")
        if self.seeds:
            return N_("This was not expected.")
        return Paragraph("findings/unexpected-one-seed")


def conclude(
    demonstration: Demonstration, results: Mapping[str, Mapping[int, Result]]
) -> Conclusion:
    """Return what the finished runs showed. results: name of the arm -> seed -> result."""
    names = [arm.name for arm in demonstration.arms if results.get(arm.name)]
    if len(names) < 2:
        return Conclusion()
    first = names[0]
    findings, of_seeds = [], list[tuple[Paired, str, str]]()
    for other in names[1:]:
        shared = sorted(set(results[first]) & set(results[other]))
        if not shared:
            continue
        seed = shared[0]
        findings.append(demonstration.compare(results[first][seed], results[other][seed]))
        if len(shared) > 1:
            of_seeds.append(_of_seeds(demonstration, results[first], results[other]))
    if not findings:
        return Conclusion()
    is_expected = all(finding.kind in demonstration.expected for finding in findings)
    tests = corrected([one for one, *_names in of_seeds])
    measure = LOSS if demonstration.counts_loss else ACCURACY
    sentences = tuple(
        sentence(test, measure, *names)
        for test, (_one, *names) in zip(tests, of_seeds, strict=True)
    )
    return Conclusion(tuple(findings), sentences, is_expected)


def _of_seeds(
    demonstration: Demonstration, first: Mapping[int, Result], second: Mapping[int, Result]
) -> tuple[Paired, str, str]:
    """Return the paired test of two arms, and their labels."""
    results = [*first.values(), *second.values()]
    has_sequences = all(
        result.sequence_accuracy is not None or result.accuracy is None for result in results
    )
    sides = [
        {
            seed: None
            if result.diverged
            else result.loss
            if demonstration.counts_loss
            else (result.sequence_accuracy if has_sequences else result.accuracy)
            for seed, result in side.items()
        }
        for side in (first, second)
    ]
    one, other = (next(iter(side.values())).label for side in (first, second))
    return paired(*sides), one, other
