"""How far a share measured on n examples can be trusted, and what choosing by it does."""

from __future__ import annotations

import math

from tfm_core.sentences import StudentError

Z_95 = 1.959963985


def wilson(right: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """Return the interval of a binomial share, with 95 % confidence (Wilson 1927).

    Unlike the plain one it stays within 0 to 1 and has a width at 0 and at n right.
    Raises ValueError for no examples, and for more right than there are.
    """
    if not 0 <= right <= n or n < 1:
        raise StudentError("{right} right of {n} is impossible.", right=right, n=n)
    share, squared = right / n, z * z
    centre = (share + squared / (2 * n)) / (1 + squared / n)
    half = z * math.sqrt(share * (1 - share) / n + squared / (4 * n * n)) / (1 + squared / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def best_of(tries: int, share: float, n: int) -> float:
    """Return the expected best of ``tries`` equally good models, each measured on n examples.

    Every one is right with probability ``share``; the best looks better than it is: the sum over k
    of P(best >= k) / n, exactly, from the binomial distribution.
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
