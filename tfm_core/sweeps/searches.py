"""How a sweep searches: Optuna's samplers suggest, its pruners stop hopeless runs.

A sampler is created for each suggestion, with a seed that depends on the trial's number, so that a
restarted server, or two on one folder, suggest the same as one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfm_core.sentences import N_, StudentError
from tfm_core.sweeps.objectives import RUNGS
from tfm_core.sweeps.space import MAX_POINTS, Range, Space, n_points

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler


@dataclass(frozen=True, slots=True)
class Search:
    """A sampler by name. make: from a seed and the runs that the budget has room for."""

    name: str
    label: str
    help: str
    make: Callable[[int, int], BaseSampler]


@dataclass(frozen=True, slots=True)
class Pruning:
    """A pruner by name."""

    name: str
    label: str
    help: str
    make: Callable[[], BasePruner]


def _random(seed: int, _n_runs: int) -> BaseSampler:
    import optuna

    return optuna.samplers.RandomSampler(seed=seed)


def _tpe(seed: int, n_runs: int) -> BaseSampler:
    import optuna

    first = min(10, max(4, n_runs // 4))  # random ones; Optuna's 10 would be all of a short sweep
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=first, constant_liar=True)


def _cma_es(seed: int, _n_runs: int) -> BaseSampler:
    import optuna

    return optuna.samplers.CmaEsSampler(
        seed=seed, n_startup_trials=2, warn_independent_sampling=False
    )


def _never() -> BasePruner:
    import optuna

    return optuna.pruners.NopPruner()


def _median() -> BasePruner:
    import optuna

    return optuna.pruners.MedianPruner(
        n_startup_trials=3, n_warmup_steps=RUNGS // 4, n_min_trials=2
    )


def _hyperband() -> BasePruner:
    import optuna

    return optuna.pruners.HyperbandPruner(min_resource=2, max_resource=RUNGS, reduction_factor=3)


SEARCHES: dict[str, Search] = {
    one.name: one
    for one in (
        Search("grid", N_("Grid"), N_("Every grid point in order."), _random),
        Search(
            "random",
            N_("Random"),
            N_("Random values (Bergstra & Bengio 2012)."),
            _random,
        ),
        Search(
            "tpe",
            N_("TPE"),
            N_("Learns where good runs are likely (Bergstra et al. 2011)."),
            _tpe,
        ),
        Search(
            "cma-es",
            N_("CMA-ES"),
            N_("Moves a cloud of points to better values (Hansen 2016)."),
            _cma_es,
        ),
    )
}  # fmt: skip

PRUNINGS: dict[str, Pruning] = {
    one.name: one
    for one in (
        Pruning("none", N_("Off"), N_("Every run trains to its end."), _never),
        Pruning(
            "median",
            N_("Median"),
            N_("After a quarter of the steps, stops runs worse than the median of 3 or more."),
            _median,
        ),
        Pruning(
            "hyperband",
            N_("Hyperband"),
            N_("Keeps the best third at a tenth and a third of the steps (Li et al. 2018)."),
            _hyperband,
        ),
    )
}  # fmt: skip


def check(search: str, pruning: str, space: Space) -> None:
    """Raise StudentError, in a sentence, where a space cannot be searched so."""
    if search not in SEARCHES:
        raise StudentError(
            "There is no sampler {name}. Choose one of {known}.",
            name=search,
            known=", ".join(SEARCHES),
        )
    if pruning not in PRUNINGS:
        raise StudentError(
            "There is no pruner {name}. Choose one of {known}.",
            name=pruning,
            known=", ".join(PRUNINGS),
        )
    if search == "grid" and (n := n_points(space)) > MAX_POINTS:
        raise StudentError(
            "The grid has {n:,} points; the limit is {most:,}. Take fewer values.",
            n=n,
            most=MAX_POINTS,
        )
    n_ranges = sum(isinstance(one, Range) for one in space)
    if search == "cma-es" and n_ranges < 2:
        raise StudentError("CMA-ES needs two number ranges and has {n}. Try TPE.", n=n_ranges)
