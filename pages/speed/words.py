"""Sentences about a measurement."""

from __future__ import annotations

import math
from collections.abc import Callable

from pages.i18n import _, paragraph
from pages.ui import show
from tfm_core.inspect.speed.paired import TimeRange
from tfm_core.inspect.speed.registry import COMPARISONS
from tfm_core.inspect.speed.report import CaseReport, SpeedReport

TIE = 0.05
"""A ratio whose logarithm is nearer to 0 than this counts as no difference."""


def side_label(name: str, side: str) -> str:
    return _(COMPARISONS[name].sides[side])


def indices(name: str, case: CaseReport) -> list[int]:
    """Return the positions of a case's sides among all sides of its comparison."""
    sides = list(COMPARISONS[name].sides)
    return [sides.index(side) if side in sides else i for i, side in enumerate(case.sides)]


def scaled(spread: TimeRange, factor: float) -> TimeRange:
    return TimeRange(spread.median * factor, spread.low * factor, spread.high * factor)


def rate(seconds: TimeRange, count: float) -> TimeRange:
    """Return examples a second; the slowest round is the lowest rate."""
    return TimeRange(count / seconds.median, count / seconds.high, count / seconds.low)


def gain(report: SpeedReport, case: CaseReport) -> str:
    """Return the ratios of a case, round by round, as the caption of its figure."""
    if len(case.sides) == 1:
        return _("One more example costs little at first, then its full share.")
    words = []
    first = side_label(report.name, case.reference)
    for side in case.sides[1:]:
        ratio = case.gain(side)
        values = {"label": side_label(report.name, side), "ratio": ratio.show("x"), "first": first}
        if is_tie(ratio):
            words.append(_("“{label}”: no clear difference from “{first}”, {ratio}.", **values))
        else:
            words.append(_("“{label}”: {ratio} as fast as “{first}”.", **values))
    return " ".join(words)


def verdict(report: SpeedReport) -> list[str]:
    """Return messages on when not to use it: first this measurement, then the rule."""
    return [*_FINDINGS[report.name](report), paragraph(f"speed/rule-{report.name}")]


def _one(report: SpeedReport, case: CaseReport, side: str) -> str:
    ratio = case.gain(side)
    values = {"label": side_label(report.name, side), "ratio": ratio.show("x")}
    if is_tie(ratio):
        return _("**{label}** made no clear difference here ({ratio}).", **values)
    if ratio.median > 1:
        return _("**{label}** was {ratio} as fast here.", **values)
    return " ".join([
        _("**{label}** was slower here: {ratio} as fast.", **values),
        _("On small maps, tiling costs more than storing the map.")
        if report.name == "attention"
        else _("Without fast 16-bit units, products are converted twice."),
    ])  # fmt: skip


def is_tie(ratio: TimeRange) -> bool:
    """Return whether a ratio is too near to 1, or its rounds lie on both sides of 1."""
    return abs(math.log(ratio.median)) < TIE or ratio.low < 1 < ratio.high


def _attention(report: SpeedReport) -> list[str]:
    alone = report.timed[0]
    facts = alone.facts
    sentences = [
        paragraph("speed/kernel", backend=facts.get("backend"), shape=facts.get("shape")),
        _one(report, alone, "fused"),
        paragraph("speed/einsum", ratio=alone.gain("einsum").show("x")),
    ]
    if len(report.timed) > 1:
        whole = report.timed[1].gain("fused")
        if whole.median < alone.gain("fused").median:
            sentences.append(_("The whole pass gains less: {ratio}.", ratio=whole.show("x")))
        else:
            sentences.append(_("The whole pass was {ratio} as fast.", ratio=whole.show("x")))
    return sentences


def _checkpointing(report: SpeedReport) -> list[str]:
    case = report.timed[-1]
    saved, slower = case.n_bytes, case.gain("checkpointed").median
    return [
        paragraph("speed/checkpointing",
            less=saved["plain"] / max(1, saved["checkpointed"]),
            after=show.size(saved["checkpointed"]),
            before=show.size(saved["plain"]),
            longer=1 / slower
        ),
        *(_one(report, case, side) for side in ("bf16", "fp16")),
    ]  # fmt: skip


def _batch(report: SpeedReport) -> list[str]:
    timed = report.timed
    rates = [(case.x or 1.0) / case.time(case.reference).median for case in timed]
    best = max(range(len(rates)), key=rates.__getitem__)
    return [
        paragraph(
            "speed/best-batch", x=timed[best].x or 0, rate=rates[best], times=rates[best] / rates[0]
        )
    ]


_FINDINGS: dict[str, Callable[[SpeedReport], list[str]]] = {
    "attention": _attention,
    "batch": _batch,
    "checkpointing": _checkpointing,
}
