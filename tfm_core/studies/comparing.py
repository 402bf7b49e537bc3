"""What a run showed, as numbers, and how it compares with the right way.

Two shares differ if they are more than two standard errors and a point apart; two speeds, if one
run took half as long again and a validation longer. A finding holds for this pair of runs; for
other seeds see ``compare.spread``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tfm_core.inspect.conclusions import is_clearly_higher
from tfm_core.inspect.curves import figures
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, Sentence, joined, points

if TYPE_CHECKING:
    from tfm_core.data.text_data import TextData

WRITTEN = 200
"""Unseen examples that a model generates answers for."""
_LAST_STEPS = 20


@dataclass(frozen=True, slots=True)
class Generated:
    """The share right of n unseen examples that a model generates.

    tokens: mean share of tokens right in any order, of the longer of answer and target.
    """

    share: float
    n: int
    tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a finished run showed; None: unknown.

    label: for sentences. accuracy, sequence_accuracy: given the true tokens so far, on n_unseen
    test examples, or else validation. loss: on these, not smoothed; training_loss: mean of the last
    steps. confidence: mean probability of its answers on the probe. validations: (step, accuracy).
    largest_gradient: its norm, before clipping. guessing: ln(classes). diverged: why, in a
    sentence. written: what it generates; sharpness: mean of the largest weight of each row of
    self-attention before the first update.
    """

    label: str
    accuracy: float | None = None
    sequence_accuracy: float | None = None
    n_unseen: int = 0
    loss: float | None = None
    training_loss: float | None = None
    confidence: float | None = None
    validations: tuple[tuple[int, float], ...] = ()
    largest_gradient: float | None = None
    guessing: float | None = None
    diverged: str | None = None
    written: Generated | None = None
    sharpness: float | None = None

    @property
    def score(self) -> float | None:
        """Return the accuracy used to compare runs: of sequences if measured, else of tokens."""
        return self.accuracy if self.sequence_accuracy is None else self.sequence_accuracy

    def first_step(self, share: float) -> int | None:
        """Return the first validation at which so large a share of tokens was right, or None."""
        return next((step for step, right in self.validations if step and right >= share), None)


def result_of(
    run: Run, label: str, *, writes_freely: bool = False, looks_sharply: bool = False
) -> Result:
    """Return the result of a finished run; ``written`` and ``sharpness`` only on request."""
    curves, experiment = run.thinned_curves(), run.experiment
    found, outcome = figures(curves), run.outcome
    is_tested = found["test_accuracy"] is not None
    n_unseen = getattr(experiment.task, "n_test" if is_tested else "n_validation", 0)
    seen, last = curves.unseen, curves.steps["loss"][-_LAST_STEPS:].astype(np.float64)
    norms = curves.steps["grad_norm"].astype(np.float64)
    norms = norms[np.isfinite(norms)]
    return Result(
        label,
        accuracy=found["test_accuracy" if is_tested else "accuracy"],
        sequence_accuracy=found["test_sequences" if is_tested else "sequences"],
        n_unseen=n_unseen,
        loss=found["test_loss" if is_tested else "loss"],
        training_loss=float(last.mean()) if len(last) and np.isfinite(last).all() else None,
        confidence=_confidence(run),
        validations=tuple(
            (int(step), float(right))
            for step, right in zip(seen["step"], seen["accuracy"], strict=True)
            if math.isfinite(right)
        ),
        largest_gradient=float(norms.max()) if len(norms) else None,
        guessing=curves.started.get("start_loss"),
        diverged=outcome.sentence if outcome is not None and outcome.kind == "diverged" else None,
        written=_written(run) if writes_freely else None,
        sharpness=_sharpness(run) if looks_sharply else None,
    )


def _confidence(run: Run) -> float | None:
    """Return the mean confidence of the last snapshot's answers, without padding."""
    try:
        snapshot = run.snapshot(run.snapshot_steps()[-1])
    except (ValueError, IndexError):
        return None
    if snapshot.confidence is None or snapshot.tokens is None:
        return None
    kept = [
        float(share)
        for row, tokens in zip(snapshot.confidence, snapshot.tokens, strict=True)
        for share in row[: len(tokens)]
    ]
    return float(np.mean(kept)) if kept else None


def _sharpness(run: Run) -> float | None:
    by_kind = modules_by_kind(run.experiment)
    largest: list[float] = []
    try:
        probe, snapshot = run.probe(), run.snapshot(0)
        for index, item in enumerate(probe.attended):
            for module in by_kind.get("encoder") or next(iter(by_kind.values()), []):
                n_queries, n_keys = axes(run.experiment, item, module).shape
                weights = snapshot.attention[module][index, :, :n_queries, :n_keys]
                largest += weights.max(-1).ravel().tolist()
    except (ValueError, KeyError, IndexError):
        return None
    return float(np.mean(largest)) if largest else None


def _written(run: Run) -> Generated | None:
    """Let the last weights answer unseen examples by themselves, greedily."""
    import torch

    from tfm_core.data.moving import data_as
    from tfm_core.data.text_data import TextData
    from tfm_core.decoding import greedy
    from tfm_core.inspect.attention.trained import data_of, model_of
    from tfm_core.models.pictures import VisionTransformer

    try:
        model, _step = model_of(run)
        data: TextData = data_as(data_of(run.experiment), TextData)
    except ValueError:
        return None
    if isinstance(model, VisionTransformer):
        return None
    unseen, words = data.validation, data.task.tgt_vocabulary
    n = min(WRITTEN, len(unseen.src))
    with torch.inference_mode():
        ids = greedy(model, unseen.src[:n], max_len=unseen.tgt.size(1) - 1).ids.tolist()
    pairs = [(words.decode(row), pair.tgt) for row, pair in zip(ids, unseen.pairs[:n], strict=True)]
    right = sum(tuple(answer) == tuple(truth) for answer, truth in pairs)
    return Generated(right / n, n, sum(in_any_order(*pair) for pair in pairs) / n)


def in_any_order(answer: Sequence[str], truth: Sequence[str]) -> float:
    """Return the share of tokens that two sequences have in common, in any order."""
    shared = (Counter(answer) & Counter(truth)).total()
    return shared / max(len(answer), len(truth), 1)


FindingKind = Literal[
    "worse",
    "better",
    "slower",
    "faster",
    "same",
    "diverged",
    "saved",
    "fooled",
    "unsure",
    "rougher",
    "unordered",
]
"""How an arm compares with the right way.

worse, better: fewer or more right; slower, faster: as many, later or sooner; diverged: its loss was
no number, and saved: that of the right way was; fooled: right only given the true tokens so far;
unsure: as many right, with less confidence; rougher: as many, after far larger gradients;
unordered: nearly all tokens right, in another order.
"""


@dataclass(frozen=True, slots=True)
class ArmFinding:
    """What a run showed beside another: a kind, and a sentence with the numbers."""

    kind: FindingKind
    sentence: Sentence


Compare = Callable[[Result, Result], ArmFinding]
"""Compares the second result with the first."""

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
    if abs(b - a) >= MIN and is_clearly_higher(max(a, b), min(a, b), n):
        kind: FindingKind = "worse" if b < a else "better"
        gap = abs(points(a, b))
        lead = (
            N_("That is {gap:.1f} points less.", gap=gap)
            if b < a
            else N_("That is {gap:.1f} points more.", gap=gap)
        )
        parts = [_figures(first, second), lead]
    elif speed is not None and speed.kind != "same":
        kind, parts = speed.kind, [N_("Both end about equally well."), _figures(first, second)]
    else:
        kind, parts = "same", [N_("This run shows no difference."), _figures(first, second)]
    return ArmFinding(kind, joined(*parts, *([] if speed is None else [speed.sentence])))


def lower_loss(first: Result, second: Result) -> ArmFinding:
    """Compare the losses on unseen text, of whose tokens none is simply right or wrong."""
    ended = _ended(first, second)
    a, b = first.loss, second.loss
    if ended is not None or a is None or b is None:
        return ended or usual(first, second)
    kind: FindingKind = "same" if abs(b - a) < NATS else "better" if b < a else "worse"
    words = N_(
        "The loss on unseen text is {b:.2f} for “{second}” and {a:.2f} for “{first}”.",
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
    if b - own.share < MIN or not is_clearly_higher(b, own.share, own.n):
        return _with(usual(first, second), Paragraph("findings/generates-alike", **values))
    curves = (
        N_("Its training loss looks normal.")
        if is_clearly_higher(a, b, max(1, second.n_unseen))
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
    sentence = N_(
        "It reached {share:.0%} of tokens at step {b:,}, “{first}” at step {a:,}.", **values
    )
    if b >= TIMES * a and b - a > interval:
        return ArmFinding("slower", sentence)
    if a >= TIMES * b and a - b > interval:
        return ArmFinding("faster", sentence)
    return ArmFinding("same", sentence)
