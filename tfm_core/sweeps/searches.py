"""How a sweep searches: over a grid, or as Optuna's samplers suggest."""

from __future__ import annotations

from typing import NamedTuple

from tfm_core.sentences import N_, StudentError
from tfm_core.sweeps.space import MAX_POINTS, Space, n_points


class Search(NamedTuple):
    """A way to search in words."""

    label: str
    help: str


SEARCHES = {
    "grid": Search(N_("Grid"), N_("Every grid point in order.")),
    "random": Search(N_("Random"), N_("Random values (Bergstra & Bengio 2012).")),
    "tpe": Search(N_("TPE"), N_("Learns where good runs are likely (Bergstra et al. 2011).")),
}


def check(search: str, space: Space) -> None:
    """Raise StudentError, in a sentence, where a space cannot be searched so."""
    if search not in SEARCHES:
        raise StudentError(
            "There is no sampler {name}. Choose one of {known}.",
            name=search,
            known=", ".join(SEARCHES),
        )
    if search == "grid" and (n := n_points(space)) > MAX_POINTS:
        raise StudentError(
            "The grid has {n:,} points; the limit is {most:,}. Take fewer values.",
            n=n,
            most=MAX_POINTS,
        )
