"""Conclusions in sentences from shares and from results of several seeds.

Two shares of n examples differ if they are more than two standard errors apart. Configurations are
trained with the same seeds and compared in pairs, which removes what a seed does to both (Student
1908). Torch-free; SciPy is imported late.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.tables import Column, Columns, table
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError, counted, joined, listed

if TYPE_CHECKING:
    import pandas as pd


ENOUGH = 0.05
"""The smallest change of a cosine that counts."""


def is_clearly_higher(higher: float, lower: float, n: int) -> bool:
    """Return whether two shares, each of n examples, differ by more than two standard errors."""
    variance = (higher * (1 - higher) + lower * (1 - lower)) / max(1, n)
    return higher - lower > 2 * math.sqrt(variance)


def ranked(shares: Mapping[str, float], n: int) -> tuple[list[str], list[str]]:
    """Return the names that nothing surpasses, as far as n examples can tell, and the others."""
    order = sorted(shares, key=lambda name: -shares[name])
    best = shares[order[0]]
    first = [name for name in order if not is_clearly_higher(best, shares[name], n)]
    return first, [name for name in order if name not in first]


def most_accurate(shares: Mapping[str, float], n: int) -> Sentence | None:
    """Say which of several models is best, or that n examples can't tell; None for a single one."""
    if len(shares) < 2:
        return None
    first, others = ranked(shares, n)
    if not others:
        best: Sentence = N_("None is clearly better: {figures}.", figures=_figures(shares, first))
    else:
        values = {"best": _figures(shares, first), "others": _figures(shares, others)}
        best = N_("Best: {best}. The others: {others}.", **values)
    if len(first) == 1:
        return best
    return joined(best, N_("With {n:,} examples, small differences may be chance.", n=n))


def best_aligned(
    attention: Mapping[str, float], right: Mapping[str, float], n: int
) -> Sentence | None:
    """Say whose attention is most on the true words, and whether it is also the most accurate."""
    if len(attention) < 2:
        return None
    order = sorted(attention, key=lambda name: -attention[name])
    words = Paragraph(
        "conclusions/aligned-best",
        best=_figures(attention, order[:1]),
        others=_figures(attention, order[1:]),
    )
    if order[0] not in right or len(right) < 2:
        return words
    first, _others = ranked(right, n)
    more: Sentence
    if order[0] not in first:
        more = Paragraph("conclusions/aligned-not-right")
    elif len(first) == 1:
        more = N_("It is also the most accurate.")
    else:
        more = N_("But it is not more accurate than the others.")
    return joined(words, more)


def strongest_cells(hits: int, rows: int) -> Sentence:
    """Say how often the strongest cell of a row is a true one."""
    return N_(
        "The strongest cell is framed in {hits:,} of {rows:,} rows ({share:.0%}).",
        hits=hits,
        rows=rows,
        share=hits / rows,
    )


def best_beyond_training(
    tokens: Mapping[str, float], n: int, length: int, trained: int
) -> Sentence | None:
    """Say which kind is best at a length beyond training. tokens: label -> token accuracy."""
    if len(tokens) < 2:
        return None
    first, others = ranked(tokens, n)
    values: dict[str, Any] = {"length": length, "trained": trained}
    values["first"] = _figures(tokens, first)
    if not others:
        return Paragraph("conclusions/none-longer", **values)
    return Paragraph("conclusions/best-longer", others=_figures(tokens, others), **values)


def settling_depths(says: Sequence[Sequence[str]]) -> Sentence:
    """Say from which depth on the answers stay. says: depth -> the likeliest tokens."""
    final, last = says[-1], len(says) - 1
    stands = []
    for place, answer in enumerate(final):
        depth = last
        while depth and says[depth - 1][place] == answer:
            depth -= 1
        stands.append(depth)
    counts = Counter(stands)
    if counts[last] == len(stands):
        return Paragraph("conclusions/none-settled", n=len(stands), layers=last)
    parts = []
    for depth in sorted(counts):
        where = (
            N_("{n} from the embedding", n=counts[depth])
            if not depth
            else N_("{n} from layer {depth}", n=counts[depth], depth=depth)
        )
        parts.append(where)
    return Paragraph(
        "conclusions/settled", n=len(stands), where=listed(parts), late=counts[last] / len(stands)
    )


def class_similarity(
    before: tuple[float, float], after: tuple[float, float], step: int
) -> Sentence | None:
    """Say whether training made the words of one class alike; None without classes.

    before, after: the mean cosine within classes and between them.
    """
    gaps = [within - between for within, between in (before, after)]
    if any(map(math.isnan, gaps)):
        return None
    figures: dict[str, Any] = {
        "within": after[0],
        "between": after[1],
        "within_0": before[0],
        "between_0": before[1],
        "step": step,
    }
    words = Paragraph("conclusions/class-cosines", **figures)
    if gaps[1] - gaps[0] > ENOUGH:
        note = N_("The model was never told the classes.")
        return joined(N_("Words of one class **became more similar**."), words, note)
    if gaps[0] - gaps[1] > ENOUGH:
        return joined(N_("Words of one class became **less** similar."), words)
    return joined(N_("Words of one class are **no more similar** than before."), words)


def _figures(shares: Mapping[str, float], names: Sequence[str]) -> str:
    return ", ".join(f"“{name}” ({shares[name]:.1%})" for name in names)


Z_95 = 1.959963985


def wilson(right: int, n: int) -> tuple[float, float]:
    """Return the 95% confidence interval of a binomial share (Wilson 1927), within 0 to 1."""
    if not 0 <= right <= n or n < 1:
        raise StudentError("{right} of {n} right is impossible.", right=right, n=n)
    share, squared = right / n, Z_95**2
    centre = (share + squared / (2 * n)) / (1 + squared / n)
    half = Z_95 * math.sqrt(share * (1 - share) / n + squared / (4 * n * n)) / (1 + squared / n)
    return max(0.0, centre - half), min(1.0, centre + half)


SHARES = Columns(
    accuracy=Column(N_("share right"), ".1%", {"tickformat": ".0%"}),
    n_right=Column(N_("right"), ","),
    n=Column(N_("total"), ","),
    low=Column(N_("95% interval, lower end"), ".1%"),
    high=Column(N_("95% interval, upper end"), ".1%"),
    loss=Column(N_("mean loss (nats per token)"), ".3f", {"rangemode": "tozero"}),
    confidence=Column(N_("mean confidence"), ".1%"),
)


def shares_right(rows: Iterable[tuple[object, int, int]]) -> pd.DataFrame:
    """Return label, n_right, n, accuracy, and its 95% interval from low to high.

    rows: of a label, the number of right ones, and of all.
    """
    measured = [
        (label, right, n, right / max(1, n), *(wilson(right, n) if n else (0.0, 1.0)))
        for label, right, n in rows
    ]
    texts = {"label": object, "n_right": int, "n": int}
    return SHARES.table(table(measured, **texts, accuracy=float, low=float, high=float))


def expected_best(tries: int, share: float, n: int) -> float:
    """Return the expected best of ``tries`` equally good models, each measured on n examples.

    That is the sum over k of P(best >= k) / n, from the binomial distribution: it exceeds
    ``share``.
    """
    below = 0.0  # P(fewer than k right)
    total = 0.0
    for k in range(1, n + 1):
        below += _binomial(k - 1, n, share)
        total += 1 - min(1.0, below) ** tries
    return max(share, total / n)  # never below what one try expects, also by rounding


def _binomial(k: int, n: int, share: float) -> float:
    if share in (0.0, 1.0):
        return float(k == n * share)
    log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log + k * math.log(share) + (n - k) * math.log1p(-share))


Floats = npt.NDArray[np.float64]

LEVEL = 0.05
"""The significance level."""
FEW_PAIRS = 3
"""So few pairs show only differences of many times the spread."""
_EQUAL = 1e-6
"""Relative tolerance of equal differences: curves are float32."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What is compared. is_share: in percent, and differences in percentage points."""

    name: str
    is_share: bool = True
    rises: bool = True

    def format(self, value: float, spread: float = 0.0) -> str:
        """Return a figure with the digits that a spread of this size leaves it."""
        unit = "%" if self.is_share else ""
        return f"{self._number(value, spread)}{unit}"

    def gap(self, difference: float, spread: float) -> str:
        """Return a difference, in percentage points for a share."""
        sign = "−" if difference < 0 else ""
        number = f"{sign}{self._number(abs(difference), spread)}"
        return N_("{n} points", n=number) if self.is_share else number

    def _number(self, value: float, spread: float) -> str:
        scale, fewest = (100, 1) if self.is_share else (1, 3)
        size = abs(spread) * scale
        digits = fewest if size <= 0 else min(max(fewest, 1 - math.floor(math.log10(size))), 6)
        return f"{value * scale:,.{digits}f}"


ACCURACY = Measure(N_("accuracy"))
LOSS = Measure(N_("loss"), is_share=False, rises=False)


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """Results of one configuration with several seeds.

    n: seeds with a result. mean, sd: of these; sd divides by n - 1 and is None for one seed. worst:
    of ``worst_seed``, None if that has no result. lost: seeds without one.
    """

    measure: Measure
    n: int
    mean: float | None
    sd: float | None
    worst_seed: int | None
    worst: float | None
    lost: tuple[int, ...] = ()

    @property
    def sentence(self) -> Sentence:
        """The figures in words."""
        measure = self.measure
        words: Sentence
        if self.mean is None:
            words = N_("No seed has a result yet.")
        elif self.sd is None:
            words = N_(
                "{mean} with one seed, so the spread is unknown.", mean=measure.format(self.mean)
            )
        else:
            words = N_(
                "{mean} ± {sd} (mean ± standard deviation, n = {n} seeds).",
                mean=measure.format(self.mean, self.sd),
                sd=measure.gap(self.sd, self.sd),
                n=self.n,
            )
            if self.worst is not None:
                worst = measure.format(self.worst, self.sd)
                worst_words = N_("Worst: {worst} (seed {seed}).", worst=worst, seed=self.worst_seed)
                words = joined(words, worst_words)
        if not self.lost:
            return words
        seeds = ", ".join(map(str, self.lost))
        lost = counted(
            "No result from seed {seeds}.",
            "No result from seeds {seeds}.",
            len(self.lost),
            seeds=seeds,
        )
        return lost if self.mean is None else joined(words, lost)


def seed_spread(figures: Mapping[int, float | None], measure: Measure) -> SeedSpread:
    """Return mean, standard deviation and the worst result by seed; None: that seed diverged."""
    known = _known(figures)
    lost = tuple(sorted(set(figures) - set(known)))
    if not known:
        return SeedSpread(measure, 0, None, None, lost[0] if lost else None, None, lost)
    values = np.array(list(known.values()), dtype=np.float64)
    sd = float(values.std(ddof=1)) if len(values) > 1 else None
    sign = 1 if measure.rises else -1
    worst = lost[0] if lost else min(known, key=lambda seed: (sign * known[seed], seed))
    return SeedSpread(measure, len(known), float(values.mean()), sd, worst, known.get(worst), lost)


def _known(figures: Mapping[int, float | None]) -> dict[int, float]:
    return {
        seed: value for seed, value in figures.items() if value is not None and math.isfinite(value)
    }


@dataclass(frozen=True, slots=True, eq=False)
class CurveBand:
    """Mean and spread of several curves along their steps; arrays of one length.

    n: the curves at a step; low and high: mean - sd and mean + sd, the mean where n is 1. A step at
    which a curve begins or ends stands twice. NaN in a gap without curves. n_curves: with a value.
    """

    steps: Floats
    mean: Floats
    low: Floats
    high: Floats
    n: npt.NDArray[np.int64]
    n_curves: int


def curve_band(curves: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]) -> CurveBand:
    """Return the band of curves, each steps (n,) and values (n,), by ascending step.

    Each curve is interpolated linearly and counts from its first to its last point, so the mean is
    exact between points too. Values that are not finite were not measured.
    """
    known: list[tuple[Floats, Floats]] = []
    for steps, values in curves:
        x, y = np.asarray(steps, np.float64), np.asarray(values, np.float64)
        finite = np.isfinite(y)
        if finite.any():
            known.append((x[finite], y[finite]))
    if not known:
        empty = np.empty(0)
        return CurveBand(empty, empty, empty, empty, np.empty(0, np.int64), 0)
    grid = np.unique(np.concatenate([x for x, _y in known]))
    first, last = (np.array([x[end] for x, _y in known])[:, None] for end in (0, -1))
    table = np.stack([np.interp(grid, x, y) for x, y in known])  # (curves, steps)
    is_over = (first <= grid[:-1]) & (grid[1:] <= last)  # (curves, stretches between two steps)
    at = (first <= grid) & (grid <= last)
    # each step as the end of the stretch before it and as the beginning of the one behind it
    ends = np.concatenate([at[:, :1], is_over], axis=1)
    begins = np.concatenate([is_over, at[:, -1:]], axis=1)
    is_alone = ~(ends.any(axis=0) | begins.any(axis=0))
    ends |= at & is_alone
    is_twice = (ends != begins).any(axis=0)
    counted = np.repeat(ends, 1 + is_twice, axis=1)
    place = np.cumsum(1 + is_twice) - 1
    counted[:, place[is_twice]] = begins[:, is_twice]
    grid, table = np.repeat(grid, 1 + is_twice), np.repeat(table, 1 + is_twice, axis=1)
    n = counted.sum(axis=0)
    mean = np.where(counted, table, 0.0).sum(axis=0) / np.where(n > 0, n, np.nan)
    squares = (np.where(counted, table - mean, 0.0) ** 2).sum(axis=0)
    sd = np.sqrt(squares / np.maximum(n - 1, 1))
    return CurveBand(grid, mean, mean - sd, mean + sd, n, len(known))


PairedKind = Literal["none", "one", "same", "constant", "tested"]


@dataclass(frozen=True, slots=True)
class Paired:
    """The second configuration against the first, seed by seed.

    seeds: common ones. mean: of second - first. kind "none": no common seed; "one": a single pair;
    "same": no difference; "constant": the same difference each time, so no test; "tested": low,
    high: 95% confidence interval; p: of the two-sided paired t-test; effect: mean over standard
    deviation of the differences. n_tests: how many tests p is corrected for.
    """

    kind: PairedKind
    seeds: tuple[int, ...] = ()
    mean: float = 0.0
    low: float | None = None
    high: float | None = None
    p: float | None = None
    effect: float | None = None
    n_tests: int = 1

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.seeds)

    @property
    def stands_out(self) -> bool:
        """Whether the difference is more than the spread of seeds explains."""
        return self.p is not None and self.p < LEVEL


def paired_test(first: Mapping[int, float | None], second: Mapping[int, float | None]) -> Paired:
    """Return the paired t-test over common seeds of two configurations, each seed -> result."""
    sides = _known(first), _known(second)
    seeds = tuple(sorted(set(sides[0]) & set(sides[1])))
    if not seeds:
        return Paired("none")
    a, b = (np.array([side[seed] for seed in seeds], np.float64) for side in sides)
    differences = b - a
    mean = float(differences.mean())
    if len(seeds) == 1:
        return Paired("one", seeds, mean)
    least = _EQUAL * max(float(np.abs(a).max()), float(np.abs(b).max()))
    if float(np.abs(differences).max()) <= least:
        return Paired("same", seeds)
    if float(np.ptp(differences)) <= least:
        return Paired("constant", seeds, mean)

    from scipy import stats

    result = stats.ttest_rel(b, a)
    interval = result.confidence_interval(1 - LEVEL)
    effect = mean / float(differences.std(ddof=1))
    low, high = float(interval.low), float(interval.high)
    return Paired("tested", seeds, mean, low, high, float(result.pvalue), effect)


def holm_corrected(found: Sequence[Paired]) -> tuple[Paired, ...]:
    """Return comparisons made together, with p-values corrected (Holm 1979).

    The chance of any false alarm among all stays at 5%; confidence intervals are not corrected.
    """
    tested = sorted((one.p, number) for number, one in enumerate(found) if one.p is not None)
    made, last = list(found), 0.0
    for place, (p, number) in enumerate(tested):
        last = max(last, min(1.0, (len(tested) - place) * p))
        made[number] = replace(found[number], p=last, n_tests=len(tested))
    return tuple(made)


def paired_sentence(found: Paired, measure: Measure, first: str, second: str) -> Sentence:
    """Say whether the second configuration differs from the first by more than the seeds do."""
    if found.kind == "none":
        return Paragraph("compare/no-common-seed", second=second, first=first)
    if found.kind == "same":
        return N_(
            "“{second}” and “{first}” are equal with each of {n} seeds.",
            second=second,
            first=first,
            n=found.n,
        )
    lead = _lead(found, measure, first, second)
    if found.kind == "one":
        return joined(lead, Paragraph("compare/one-pair"))
    if found.kind == "constant":
        return joined(lead, Paragraph("compare/constant", n=found.n))
    assert found.low is not None
    assert found.high is not None
    ends = sorted((-end if found.mean < 0 else end) for end in (found.low, found.high))
    low, high = (measure.gap(end, _width(found)) for end in ends)
    verdict = (
        N_("The spread between seeds does not explain it.")
        if found.stands_out
        else N_("The spread between seeds may explain it.")
    )
    test = Paragraph("compare/t-test", n=found.n, p=_p(found), low=low, high=high)
    few = [Paragraph("compare/few-pairs", n=found.n)] if found.n <= FEW_PAIRS else []
    return joined(lead, verdict, test, *few)


def _lead(found: Paired, measure: Measure, first: str, second: str) -> Sentence:
    """Return the difference in a sentence."""
    values = {"second": second, "first": first}
    if found.mean == 0:
        return N_("On average “{second}” equals “{first}”.", **values)
    values["gap"] = measure.gap(abs(found.mean), _width(found))
    if found.mean > 0:
        return N_("“{second}” is {gap} above “{first}”.", **values)
    return N_("“{second}” is {gap} below “{first}”.", **values)


def _width(found: Paired) -> float:
    """Return the precision of a difference, for its digits."""
    if found.low is None or found.high is None:
        return abs(found.mean)
    return (found.high - found.low) / 2


def _p(found: Paired) -> str:
    assert found.p is not None
    p_value = "p < 0.001" if found.p < 0.001 else f"p = {found.p:.2g}"
    if found.n_tests == 1:
        return p_value
    return N_("{p} with Holm’s correction for {n} comparisons", p=p_value, n=found.n_tests)
