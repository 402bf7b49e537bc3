"""Moments of a training, a sentence each, and why its validation can look better than training.

A moment is computed from snapshots and curves up to its step. A snapshot gets the most telling new
event, if any: none that was true from the start, none twice. What has to wait for its turn comes
with a later snapshot while it is still news, with the numbers of that snapshot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment, built
from tfm_core.inspect.attention import heads
from tfm_core.inspect.attention.alignment import LEARNED, scored_modules
from tfm_core.inspect.attention.heads import role_words
from tfm_core.inspect.attention.trained import cached_by_snapshot
from tfm_core.probe import items
from tfm_core.probe.labels import kind_of, layer_of, modules_by_kind
from tfm_core.probe.labels import patches_per_side as side_of
from tfm_core.probe.types import Floats, Probe, Snapshot
from tfm_core.runs.curves import Curves
from tfm_core.runs.outcome import MIN_PROGRESS, jump, loss_progress
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, Sentence, joined, percent

DIFFERENT = 0.4
"""Difference between the shares on true source words from which two heads of a layer differ."""
PLAIN = 0.5
"""Share of a head's attention on one role, or on the strokes, that makes a moment."""
SURE = 0.5
"""Probability from which a picture counts as right: never reached by chance with ten classes."""
_SURE_OF_LABEL = 0.9  # the same for a single token, where there may be only two
_INK = 128  # of 255: a patch with a pixel as bright is one that the digit covers

STALE = 1.2
"""An event is news up to this many times its first step."""

Shares = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Measured:
    """What a snapshot shows.

    heads: rows of the table of ``heads``, by module. ink: share of each head on the patches with
    ink, by module, and even_ink: the same under even attention. right: by example.
    """

    heads: Mapping[str, Sequence[Mapping[str, Any]]]
    ink: Mapping[str, Shares]
    even_ink: float
    right: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class _Event:
    """A possible moment. rank: the lowest is the most telling; keys: the facts that it states."""

    rank: int
    keys: frozenset[object]
    sentence: str


@dataclass(eq=False)
class _History:
    """The facts that were stated, and the step since which each fact is true."""

    since: dict[object, int] = field(default_factory=dict)
    stated: set[object] = field(default_factory=set)

    def news(self, step: int, events: Sequence[_Event]) -> _Event | None:
        """Return the most telling new event, and count it as stated."""
        for event in events:
            for key in event.keys:
                self.since.setdefault(key, step)
        fresh = [event for event in events if any(self._is_news(key, step) for key in event.keys)]
        if not fresh:
            return None
        chosen = min(fresh, key=lambda event: event.rank)
        self.stated |= chosen.keys
        return chosen

    def _is_news(self, key: object, step: int) -> bool:
        return key not in self.stated and step <= STALE * self.since[key]


def moments(run: Run, steps: Sequence[int]) -> dict[int, str]:
    """Return what happened by the snapshots of a run, ascending: at most one sentence a step.

    steps: of the snapshots, ascending; damaged ones are left out. Raises ValueError, in a sentence,
    without a readable probe.
    """
    experiment, probe = run.experiment, run.probe()
    curves = run.thinned_curves()
    history, found, before = _History(), dict[int, str](), -1
    for step in steps:
        try:
            measured = _measure(run, step)
        except (OSError, ValueError):
            continue
        events = [*_aligning(experiment, measured), *_of_heads(experiment, measured)]
        events += [*_of_answers(probe, measured), *_of_curves(curves, before, step)]
        before = step
        if step == 0:
            history.stated |= {key for event in events for key in event.keys}
            found[0] = N_("The weights are random.")
        elif (news := history.news(step, events)) is not None:
            found[step] = news.sentence
    return found


@cached_by_snapshot
def _measure(run: Run, step: int) -> _Measured:
    """Return what a snapshot shows of heads and answers."""
    experiment, probe, snapshot = run.experiment, run.probe(), run.snapshot(step)
    by_module: dict[str, list[Mapping[str, Any]]] = {}
    for row in heads.rows_of_step(run, step):
        by_module.setdefault(row["module"], []).append(row)
    covered = _covered(experiment, probe)
    return _Measured(
        heads=by_module,
        ink={} if covered is None else dict(_on_ink(experiment, snapshot, covered)),
        even_ink=0.0 if covered is None else float(covered.mean()),
        right=tuple(_is_right(experiment, probe, snapshot, n) for n in range(len(probe.items))),
    )


def _covered(experiment: Experiment, probe: Probe) -> npt.NDArray[np.bool_] | None:
    """Return bool (P, patches): which patches a digit covers; None where there are none."""
    task = experiment.task
    if probe.images is None or not task.class_names or probe.images.shape[1] != 1:
        return None
    side = side_of(experiment)
    size = probe.images.shape[-1] // side
    tiles = probe.images[:, 0].reshape(len(probe.images), side, size, side, size)
    return np.asarray((tiles.max((2, 4)) >= _INK).reshape(len(tiles), side**2))


def _on_ink(
    experiment: Experiment, snapshot: Snapshot, covered: npt.NDArray[np.bool_]
) -> Iterator[tuple[str, Shares]]:
    """Yield modules, and the share of each head's attention on the patches that digits cover."""
    first = int(experiment.has_cls)
    for module in modules_by_kind(experiment).get("patches", []):
        if (maps := snapshot.attention.get(module)) is not None:
            weights = np.asarray(maps[..., first:], np.float32)  # (A, H, Q, patches)
            on = np.einsum("ahqk,ak->h", weights, covered[: len(weights)].astype(np.float32))
            yield module, tuple(map(float, on / (weights.shape[0] * weights.shape[2])))


def attention_on_ink(run: Run, step: int) -> tuple[float, float] | None:
    """Return the share of all heads' attention on patches with ink, and that of even attention.

    None where no digit is read. Raises ValueError for a damaged snapshot.
    """
    measured = _measure(run, step)
    shares = [share for of_module in measured.ink.values() for share in of_module]
    return (float(np.mean(shares)), measured.even_ink) if shares else None


def _is_right(experiment: Experiment, probe: Probe, snapshot: Snapshot, index: int) -> bool:
    """Say whether an example is answered right, and not by chance."""
    item = probe.items[index]
    if snapshot.probabilities is not None:
        label = item.get("label")
        return label is not None and bool(snapshot.probabilities[index][label] >= SURE)
    if snapshot.tokens is None:
        return False
    is_right = bool(items.is_right(experiment, item, snapshot.tokens[index]))
    if len(item["tgt"]) > 1 or snapshot.confidence is None:
        return is_right
    return is_right and bool(snapshot.confidence[index][0] >= _SURE_OF_LABEL)


def _aligning(experiment: Experiment, measured: _Measured) -> Iterator[_Event]:
    """Yield events of heads that align, and of heads that differ in it."""
    for module in scored_modules(experiment):
        shares = [row.get("aligned", np.nan) for row in measured.heads.get(module, ())]
        if not shares or np.isnan(shares).any():
            continue
        layer = _named(experiment, module)
        first = measured.heads[module][0]
        least, n = max(LEARNED, 2 * first["even aligned"]), first["n_examples"]
        align = [head for head, share in enumerate(shares) if share >= least]
        sentence: Sentence
        if len(align) == 1:
            sentence = Paragraph(
                "moments/head-aligns",
                head=_named(experiment, module, align[0]),
                share=percent(shares[align[0]]),
                n=n,
            )
            yield _Event(1, frozenset({(module, align[0])}), sentence)
        elif align:
            sentence = Paragraph(
                "moments/several-heads-align",
                layer=layer,
                n_aligned=len(align),
                n_heads=len(shares),
                n=n,
                least=percent(min(shares[head] for head in align)),
                most=percent(max(shares)),
            )
            yield _Event(1, frozenset((module, head) for head in align), sentence)
        high, low = int(np.argmax(shares)), int(np.argmin(shares))
        if shares[high] >= least and shares[high] - shares[low] >= DIFFERENT:
            sentence = Paragraph(
                "moments/heads-differ",
                layer=layer,
                high=high + 1,
                most=percent(shares[high]),
                low=low + 1,
                few=percent(shares[low]),
                n=n,
            )
            yield _Event(6, frozenset({("different", module)}), sentence)


def _of_heads(experiment: Experiment, measured: _Measured) -> Iterator[_Event]:
    """Yield events of heads: roles, and ink."""
    for module, rows in measured.heads.items():
        kind = kind_of(experiment, module).name
        for head, row in enumerate(rows):
            role = heads.leading_role(row)
            if role is not None and (share := float(row[role])) >= PLAIN:
                sentence: Sentence = N_(
                    "{head} now puts {share} of its attention on one role: {role} "
                    "(mean of {n} examples).",
                    head=_named(experiment, module, head),
                    share=percent(share),
                    role=role_words(role, kind),
                    n=row["n_examples"],
                )
                yield _Event(7, frozenset({(kind, role)}), sentence)
    for module, shares in measured.ink.items():
        for head, share in enumerate(shares):
            if share >= max(PLAIN, 1.5 * measured.even_ink):
                sentence = Paragraph(
                    "moments/follows-strokes",
                    head=_named(experiment, module, head),
                    share=percent(share),
                    even=percent(measured.even_ink),
                    n=measured.heads[module][head]["n_examples"],
                )
                yield _Event(5, frozenset({"ink"}), sentence)


def _of_answers(probe: Probe, measured: _Measured) -> Iterator[_Event]:
    """Yield events of right answers."""
    n, right = len(measured.right), [index for index, is_so in enumerate(measured.right) if is_so]
    if len(right) == 1:
        item = probe.items[right[0]]
        name = str(item["label"]) if "label" in item else item.get("src_text") or item["tgt_text"]
        name = name.removesuffix(".")
        sentence = N_("The model gets its first of {n} examples right: “{name}”.", n=n, name=name)
        yield _Event(3, frozenset({"right"}), sentence)
    elif len(right) == n:
        sentence = N_("All {n} examples are right.", n=n)
        yield _Event(3, frozenset({"right", "all right"}), sentence)
    elif right:
        sentence = N_("{k} of the {n} examples are right.", k=len(right), n=n)
        yield _Event(3, frozenset({"right"}), sentence)


def _of_curves(curves: Curves, before: int, step: int) -> Iterator[_Event]:
    """Yield events of curves up to a step; ``before`` is the step of the snapshot before."""
    progress = loss_progress(curves)
    if progress is None:
        return
    if (jumped := jump(progress, before, step)) is not None:
        at, usual, high = jumped
        words = N_(
            "The loss jumped from {usual:,.2f} to {loss:,.2f} at step {step:,}.",
            usual=usual,
            loss=high,
            step=at,
        )
        yield _Event(0, frozenset({("jump", step)}), words)
    measured = curves.unseen.up_to(step)
    loss, accuracy = measured.last("loss"), measured.last("accuracy")
    chance, whole = curves.started.get("chance"), measured.last("sequence_accuracy")
    at = int(measured.last("step") or 0)
    if loss is None or accuracy is None or chance is None:
        return
    way = progress.share(loss)
    if way >= MIN_PROGRESS and accuracy > chance:
        better = Paragraph(
            "moments/better-than-guessing", at=at, share=percent(accuracy), chance=percent(chance)
        )
        yield _Event(8, frozenset({"better than guessing"}), better)
    if progress.floor:  # not every answer can be known, so the loss says how much of it is
        learned = Paragraph(
            "moments/learned-share",
            at=at,
            share=percent(way),
            loss=loss,
            guessing=progress.guessing,
            floor=progress.floor,
        )
        yield from _reached({"way": (way, learned)}, (0.5, 0.9))
        return
    words = N_("Validation accuracy is {share}.", share=percent(accuracy))
    reached = {
        "right": (accuracy, _with_since(words, measured["step"], measured["accuracy"], step))
    }
    if whole is not None:
        words = N_("Validation sequence accuracy is {share}.", share=percent(whole))
        since = _with_since(words, measured["step"], measured["sequence_accuracy"], step)
        reached["whole"] = whole, since
    yield from _reached(reached, (0.5, 0.9, 0.99))


def _reached(
    shares: Mapping[str, tuple[float, Sentence]], levels: tuple[float, ...]
) -> Iterator[_Event]:
    """Yield an event per level that a share reaches: it states that level and all below it."""
    for n, level in enumerate(levels, 1):
        for fact, (share, sentence) in shares.items():
            if share >= level:
                yield _Event(2, frozenset((fact, one) for one in levels[:n]), sentence)


def _with_since(sentence: Sentence, steps: Floats, shares: Floats, step: int) -> Sentence:
    """Return the sentence, and since which validation the share, as shown, is the same.

    steps, shares: (n,) of the validations up to ``step``.
    """
    known = np.isfinite(shares)
    steps, shares = steps[known], shares[known]
    last = percent(float(shares[-1]))
    different = [n for n, share in enumerate(shares.tolist()) if percent(share) != last]
    since = int(steps[different[-1] + 1 if different else 0])
    if since == step:
        return sentence
    return joined(sentence, N_("Unchanged since step {since:,}.", since=since))


def _named(experiment: Experiment, module: str, head: int | None = None) -> str:
    """Return a layer or a head in words, with its kind of attention where the model has several."""
    is_one = len(modules_by_kind(experiment)) == 1
    label, layer = kind_of(experiment, module).label, layer_of(module) + 1
    if head is None:
        if is_one:
            return N_("Layer {layer}", layer=layer)
        return N_("{kind}, layer {layer}", kind=label, layer=layer)
    if is_one:
        return N_("Layer {layer}, head {head}", layer=layer, head=head + 1)
    return N_("{kind}, layer {layer}, head {head}", kind=label, layer=layer, head=head + 1)


MIN_MEASURED = 3
"""Validations in a row that have to be better: fewer may be chance."""
MIN_LOSS_GAP = 0.02
"""Share of the training loss that validation has to be below it."""
MIN_VISIBLE_GAP = 0.01
"""The same as a share of the highest training loss: less cannot be seen on the curve."""
MIN_ACCURACY_GAP = 0.005
"""How far above training's its accuracy has to be instead."""
LAG = 0.1
"""Share of the gap from which a mean that lags is named as a cause."""
_BY_CHANCE = N_("No setting explains it. The validation examples may be easier by chance.")
_UNKNOWN = N_("Your program may use dropout or augmentation; its settings are not recorded.")
_CHANGES = ("shift", "rotation", "scale", "slant")  # random changes of training pictures


def better_validation(
    experiment: Experiment, curves: Curves, window: int
) -> tuple[int, int, Sentence] | None:
    """Return the longest stretch in which validation looks better than training, and why.

    Its first and last step, and the causes that apply; None where there is none. window: how many
    batches the line of training averages, looking back.
    """
    steps, losses = curves.steps["step"], curves.steps["loss"]
    measured = curves.validation
    measured_at = measured["step"]
    rows = np.searchsorted(steps, measured_at, side="right")
    known = (measured_at > 0) & (rows >= 2)
    measured_at, rows = measured_at[known], rows[known]
    if len(measured_at) < MIN_MEASURED:
        return None
    loss, accuracy = (
        (_means(curves.steps[name], rows, window), measured[name][known])
        for name in ("loss", "accuracy")
    )
    with np.errstate(invalid="ignore"):
        top = max(filter(math.isfinite, loss[0].tolist()), default=0.0)
        better = loss[0] - loss[1] > np.maximum(
            MIN_LOSS_GAP * np.abs(loss[0]), MIN_VISIBLE_GAP * top
        )
        better |= accuracy[1] - accuracy[0] > MIN_ACCURACY_GAP
    start, end = _longest(better)
    if end - start < MIN_MEASURED:
        return None
    first, last = int(measured_at[start]), int(measured_at[end - 1])
    gap = _mean(loss[0][start:end] - loss[1][start:end])
    lag = _mean(_lags(losses, rows[start:end], window))
    causes = list(_of_settings(experiment, curves, (first, last), falls=gap > 0))
    if lag > 0 and not lag <= LAG * gap:
        causes.append(
            N_("The training line lags because it averages the last {n} batches.", n=window)
        )
    return first, last, joined(*(causes or [_BY_CHANCE]))


def _of_settings(
    experiment: Experiment, curves: Curves, between: tuple[int, int], *, falls: bool
) -> Iterator[Sentence]:
    """Yield the causes that make training harder. falls: the training loss is above the other."""
    training = experiment.training
    if training is None:
        yield _UNKNOWN
        return
    if dropout := _highest(built(experiment.model).dropout, "model.dropout", curves, between):
        yield N_("Dropout of {share:.0%} is on in training only.", share=dropout)
    if any(getattr(experiment.task, name, 0.0) for name in _CHANGES):
        yield N_("Augmentation makes training pictures harder.")
    if noise := getattr(experiment.task, "label_noise", 0.0):
        yield N_("{share:.0%} of the training labels are wrong (label noise).", share=noise)
    smoothing = training.label_smoothing
    if falls and _highest(smoothing, "training.label_smoothing", curves, between):
        yield N_("Only the training loss includes label smoothing.")


def _highest(first_value: float, setting: str, curves: Curves, between: tuple[int, int]) -> float:
    """Return the highest value that a setting had between two steps."""
    first, last = between
    turns = [(turn.step, turn.value) for turn in curves.turns if turn.setting == setting]
    before = [value for step, value in turns if step <= first]
    within = [value for step, value in turns if first < step <= last]
    return max([before[-1] if before else first_value, *within])


def _means(values: Floats, rows: npt.NDArray[np.intp], window: int) -> Floats:
    """Return the mean of the last ``window`` values before each row; NaN where none is known."""
    return np.array([_mean(values[max(0, row - window) : row]) for row in rows], np.float64)


def _lags(values: Floats, rows: npt.NDArray[np.intp], window: int) -> Floats:
    """Return how much the mean of each window lies above its newer half."""
    halves = np.array(
        [_mean(values[max(0, row - (window + 1) // 2) : row]) for row in rows], np.float64
    )
    lags: Floats = _means(values, rows, window) - halves
    return lags


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _longest(better: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return the start and the end of the longest stretch of True; the first of equal ones."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], better, [False]]).astype(np.int8)))
    stretches = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
    return max(stretches, key=lambda ends: ends[1] - ends[0], default=(0, 0))
