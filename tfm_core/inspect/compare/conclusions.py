"""Conclusions in words from measured shares, and how far a share of n examples can be trusted.

Two shares of n examples differ if they are more than two standard errors apart.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfm_core.inspect.tables import Column, Columns, table
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError, joined, listed

if TYPE_CHECKING:
    import pandas as pd

ENOUGH = 0.05
"""The smallest change of a cosine that counts."""


def tells_apart(higher: float, lower: float, n: int) -> bool:
    """Return whether two shares, each of n examples, differ by more than two standard errors."""
    variance = (higher * (1 - higher) + lower * (1 - lower)) / max(1, n)
    return higher - lower > 2 * math.sqrt(variance)


def ranked(shares: Mapping[str, float], n: int) -> tuple[list[str], list[str]]:
    """Return the names that nothing surpasses, as far as n examples can tell, and the others."""
    order = sorted(shares, key=lambda name: -shares[name])
    best = shares[order[0]]
    first = [name for name in order if not tells_apart(best, shares[name], n)]
    return first, [name for name in order if name not in first]


def most_right(shares: Mapping[str, float], n: int) -> Sentence | None:
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


def strongest(hits: int, rows: int) -> Sentence:
    """Say how often the strongest cell of a row is a true one."""
    return N_(
        "The strongest cell is framed in {hits:,} of {rows:,} rows ({share:.0%}).",
        hits=hits,
        rows=rows,
        share=hits / rows,
    )


def beyond(tokens: Mapping[str, float], n: int, length: int, trained: int) -> Sentence | None:
    """Say which kind is best at a length beyond training. tokens: label -> token accuracy."""
    if len(tokens) < 2:
        return None
    first, others = ranked(tokens, n)
    values: dict[str, Any] = {"length": length, "trained": trained}
    values["first"] = _figures(tokens, first)
    if not others:
        return Paragraph("conclusions/none-longer", **values)
    return Paragraph("conclusions/best-longer", others=_figures(tokens, others), **values)


def settled(says: Sequence[Sequence[str]]) -> Sentence:
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


def classes_apart(
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


def best_of(tries: int, share: float, n: int) -> float:
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
