"""What a measurement means, in words that depend on what was found."""

from __future__ import annotations

import math

from pages.i18n import _
from pages.speed.rules import RULES, WHY_SLOWER
from pages.ui import show
from tfm_core.inspect.speed.paired import TimeRange
from tfm_core.inspect.speed.registry import COMPARISONS
from tfm_core.inspect.speed.report import CaseReport, SpeedReport

NOTHING = 0.05
"""A ratio nearer to 1 than this is called no difference."""


def side_label(name: str, side: str) -> str:
    """Return what a side is called."""
    if name == "threads":
        return _("1 thread") if side == "1" else _("{n} threads", n=side)
    return _(COMPARISONS[name].sides[side])


def indices(name: str, case: CaseReport) -> list[int]:
    """Return where the sides of an case stand among all of their comparison."""
    known = list(COMPARISONS[name].sides)
    return [known.index(side) if side in known else i for i, side in enumerate(case.sides)]


def scaled(spread: TimeRange, factor: float) -> TimeRange:
    """Return a spread in another unit."""
    return TimeRange(spread.median * factor, spread.low * factor, spread.high * factor)


def rate(seconds: TimeRange, count: float) -> TimeRange:
    """Return examples a second; the slowest round is the lowest rate."""
    return TimeRange(count / seconds.median, count / seconds.high, count / seconds.low)


def crossing(report: SpeedReport) -> float | None:
    """Return the batch size from which on the GPU is faster."""
    from tfm_core.inspect.speed.passes import crossover

    cpu, gpu = (
        {case.x or 0.0: case.time(side).median for case in report.timed} for side in ("cpu", "gpu")
    )
    return crossover(cpu, gpu)


def gain(report: SpeedReport, case: CaseReport) -> str:
    """Say the ratios of an case, round by round, as the caption of its figure."""
    if len(case.sides) == 1:
        return _("See what one more example costs: little at first, then its full share.")
    parts = []
    for side in case.sides[1:]:
        ratio = case.gain(side)
        label = side_label(report.name, side)
        how = _("{ratio} as fast") if ratio.median >= 1 else _("only {ratio} as fast")
        if is_nothing(ratio):
            how = _("no difference that stands out, {ratio}")
        parts.append(f"“{label}” {how.format(ratio=ratio.show('x'))}")
    where = "" if case.x is None else _(" at {x:,.0f}", x=case.x)
    return _(
        "Beside “{first}”{where}: ", first=side_label(report.name, case.reference), where=where
    ) + "; ".join(parts)


def verdict(report: SpeedReport) -> list[str]:
    """Return sentences on when not to use it: first what this measurement says, then the rule."""
    return [*_found(report), _(RULES[report.name])]


def _found(report: SpeedReport) -> list[str]:
    case = report.timed[-1]
    if report.name == "attention":
        return _attention(report)
    if report.name == "compile":
        return _compile(case)
    if report.name == "checkpointing":
        return _checkpointing(case)
    if report.name == "batch":
        return _batch(report)
    if report.name == "length":
        return _length(report)
    if report.name == "gpu":
        return _gpu(report)
    return [_one(report, case, side) for side in case.sides[1:]]


def _one(report: SpeedReport, case: CaseReport, side: str) -> str:
    ratio, label = case.gain(side), side_label(report.name, side)
    if is_nothing(ratio):
        return _(
            "Here **{label}** made no difference that stands out ({ratio}).",
            label=label,
            ratio=ratio.show("x"),
        )
    if ratio.median > 1:
        return _("Here **{label}** was {ratio} as fast.", label=label, ratio=ratio.show("x"))
    return _(
        "Here **{label}** was slower: {ratio} as fast. {why}",
        label=label,
        ratio=ratio.show("x"),
        why=_(WHY_SLOWER.get(report.name, "")),
    )


def is_nothing(ratio: TimeRange) -> bool:
    """Whether a ratio is too near to 1, or its rounds too far apart on both sides of it."""
    return abs(math.log(ratio.median)) < NOTHING or ratio.low < 1 < ratio.high


def _attention(report: SpeedReport) -> list[str]:
    alone = report.timed[0]
    facts = alone.facts
    words = _(
        "The kernel that ran was **{backend}**, on queries of shape (B, H, Q, D) = {shape}.",
        backend=facts.get("backend"),
        shape=facts.get("shape"),
    )
    by_letters = _(
        "Two einsums, `nqhd,nkhd->nhqk` for the scores and `nhql,nlhd->nqhd` for the sum, are the "
        "same products with the axes said in letters: {ratio} the speed of `@`.",
        ratio=alone.gain("einsum").show("x"),
    )
    sentences = [words, _one(report, alone, "fused"), by_letters]
    if len(report.timed) > 1:
        whole = report.timed[1].gain("fused")
        rule = (
            _("Attention is only part of the whole pass, which gains less: {ratio}.")
            if whole.median < alone.gain("fused").median
            else _("The whole pass, of which attention is only a part: {ratio} as fast.")
        )
        sentences.append(rule.format(ratio=whole.show("x")))
    return sentences


def _compile(case: CaseReport) -> list[str]:
    first = float(case.facts["first_seconds"])
    eager, compiled = case.time("eager").median, case.time("compiled").median
    words = _(
        "The first pass took **{first}**, a pass after it {after:.3g} ms.",
        first=show.duration(first),
        after=1000 * compiled,
    )
    if compiled < eager:
        n = math.ceil((first - compiled) / (eager - compiled))
        return [words, _("It pays for itself after **{n:,} passes**.", n=n)]
    return [
        words,
        _("Here it was **not faster** afterwards, so compiling never pays for itself: the time "
          "goes into matrix products that are compiled already."),
    ]  # fmt: skip


def _checkpointing(case: CaseReport) -> list[str]:
    kept, slower = case.n_bytes, case.gain("checkpointed").median
    return [
        _("Here it kept **{less:.1f} times fewer bytes** ({after} instead of {before}) and took "
          "{longer:.2f} times as long.",
            less=kept["plain"] / max(1, kept["checkpointed"]),
            after=show.size(kept["checkpointed"]),
            before=show.size(kept["plain"]),
            longer=1 / slower,
        )
    ]  # fmt: skip


def _batch(report: SpeedReport) -> list[str]:
    timed = report.timed
    rates = [(case.x or 1.0) / case.time(case.reference).median for case in timed]
    best = max(range(len(rates)), key=rates.__getitem__)
    return [
        _("Here {x:,.0f} at a time gave most: {rate:,.0f} examples a second, **{times:.1f} times "
          "as many as one by one**.",
            x=timed[best].x or 0, rate=rates[best], times=rates[best] / rates[0]
        )
    ]  # fmt: skip


def _length(report: SpeedReport) -> list[str]:
    timed = report.timed
    if len(timed) < 2:
        return []
    sentences = []
    for side in timed[0].sides:
        before, after = timed[-2].time(side).median, timed[-1].time(side).median
        sentences.append(
            _("From {a:,.0f} to {b:,.0f} tokens **{label}** takes {times:.1f} times as long, and "
              "keeps {kept:.1f} times the bytes.",
                a=timed[-2].x or 0, b=timed[-1].x or 0, label=side_label(report.name, side),
                times=after / before,
                kept=timed[-1].n_bytes[side] / max(1, timed[-2].n_bytes[side]),
            )
        )  # fmt: skip
    return sentences


def _gpu(report: SpeedReport) -> list[str]:
    crossed = crossing(report)
    if crossed is None:
        return [_("Here the GPU was not faster at any size measured: by the time an "
                  "operation is launched there, the CPU is done.")]  # fmt: skip
    return [_("The GPU is faster from a batch of **{n:,.0f}** on.", n=crossed)]
