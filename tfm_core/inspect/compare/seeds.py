"""Which runs are one configuration with several seeds, and which seeds are missing. Torch-free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tfm_core.choices.config import Experiment
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

MIN, USUAL, MAX = 2, 5, 20
"""Seeds of one configuration: limits, and the default."""
_LAST_SEED = 2**31 - 1


def is_same_but_seed(one: Experiment, other: Experiment) -> bool:
    """Return whether two experiments differ in nothing but, perhaps, their seed.

    How many snapshots are taken changes no weight.
    """
    if (one.model, one.task) != (other.model, other.task):
        return False
    if one.training is None or other.training is None:
        return one.training is other.training
    return one.training.replace(snapshots=other.training.snapshots) == other.training


def configurations(runs: Sequence[Run]) -> list[dict[int, Run]]:
    """Return runs that differ in their seed alone together, by seed, ascending.

    The first run of a seed counts, and groups stand in the order of their first runs. Damaged runs
    are left out.
    """
    groups: list[tuple[Experiment, dict[int, Run]]] = []
    for run in runs:
        if run.problem is not None:
            continue
        experiment = run.experiment
        for first, group in groups:
            if is_same_but_seed(first, experiment):
                group.setdefault(experiment.seed, run)
                break
        else:
            groups.append((experiment, {experiment.seed: run}))
    return [dict(sorted(group.items())) for _experiment, group in groups]


def plans(
    experiments: Sequence[Experiment], runs: Sequence[Run], n: int
) -> list[tuple[Mapping[int, Run], list[Experiment]]]:
    """Return, for ``n`` seeds of each experiment, the runs that exist, by seed, and what lacks.

    All get the same seeds: first those that most have, then those after the first experiment's.
    Runs count as in ``counts``, unless they continue another. Raises StudentError for a wrong n.
    """
    if not MIN <= n <= MAX:
        raise StudentError("Choose {fewest} to {most} seeds, not {n}.", n=n, fewest=MIN, most=MAX)
    known = [there(experiment, runs) for experiment in experiments]
    wanted = _wanted([*known, {one.seed for one in experiments[:1]}], experiments[0].seed, n)
    return [
        (found, [experiment.replace(seed=seed) for seed in wanted if seed not in found])
        for experiment, found in zip(experiments, known, strict=True)
    ]


def _wanted(known: Iterable[Iterable[int]], first: int, n: int) -> list[int]:
    """Return ``n`` seeds: the most frequent first, then those from ``first`` on."""
    counts = Counter(seed for seeds in known for seed in seeds)
    wanted = sorted(counts, key=lambda seed: (-counts[seed], seed))[:n]
    seed = first
    while len(wanted) < n:
        if seed not in wanted:
            wanted.append(seed)
        seed = seed + 1 if seed < _LAST_SEED else 0
    return wanted


def there(experiment: Experiment, runs: Iterable[Run]) -> dict[int, Run]:
    """Return the runs of an experiment by seed, ascending: the first of each seed that counts."""
    found: dict[int, Run] = {}
    for run in runs:
        if run.problem is None and is_same_but_seed(run.experiment, experiment) and counts(run):
            found.setdefault(run.experiment.seed, run)
    return dict(sorted(found.items()))


def counts(run: Run) -> bool:
    """Return whether a run is one seed of its configuration: active, finished or diverged."""
    if run.meta.parent is not None:
        return False
    status = run.status
    if status.is_active or status.state == "finished":
        return True
    outcome = run.outcome
    return outcome is not None and outcome.kind == "diverged"
