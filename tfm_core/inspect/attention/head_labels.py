"""What each head does, in a few words: the labels of every view of a run's heads.

At a step of a run they are means over the examples that its snapshots keep, whichever of them is
shown, so that a head has the same figure in every view. Of a visitor's own example they are of
that example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tfm_core.config import Experiment
from tfm_core.inspect.attention import alignment, head_statistics
from tfm_core.inspect.attention.alignment import AlignmentScore
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.head_statistics import HeadStatistics
from tfm_core.probe.labels import modules_by_kind
from tfm_core.runs.record.snapshots import snapshot_path
from tfm_core.runs.run import Run
from tfm_core.sentences import N_


@dataclass(frozen=True, slots=True)
class HeadLabels:
    """What the heads of a kind of attention do, row by row: below a small map, and as a sentence.

    n_examples: of so many they are the mean.
    """

    short: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    n_examples: int = 0


def of_step(run: Run, step: int, kind: str) -> HeadLabels:
    """Return the labels of a kind of attention at a snapshot of a run. Raises ValueError."""
    run.snapshot(step)  # says in a sentence what is wrong with it
    changed = snapshot_path(run.folder, step).stat().st_mtime_ns
    return _of_step(run.folder, step, changed, kind)


def of_example(experiment: Experiment, example: Example, kind: str) -> HeadLabels:
    """Return the labels of a kind of attention on one example alone."""
    modules = modules_by_kind(experiment)[kind]
    scored: dict[str, AlignmentScore] = {}
    for module in set(modules) & set(alignment.scored_modules(experiment)):
        weights, mask = example.attention[module][None], example.masks[module][None]
        try:
            scored[module] = alignment.score_maps(experiment, module, [example.item], weights, mask)
        except ValueError:  # of one's own example the truth is not known
            continue
    return _labels(modules, head_statistics.of_example(experiment, example), scored)


@lru_cache(maxsize=512)
def _of_step(folder: Path, step: int, changed: int, kind: str) -> HeadLabels:
    run = Run(folder)
    scored = alignment.of_step(folder, step, changed)
    figures = head_statistics.of_step(folder, step, changed)
    return _labels(modules_by_kind(run.experiment)[kind], figures, scored)


def _labels(
    modules: Sequence[str],
    figures: Mapping[str, HeadStatistics],
    scored: Mapping[str, AlignmentScore],
) -> HeadLabels:
    if any(module not in figures for module in modules):
        return HeadLabels()
    heads = [
        (figures[module], head, float(scored[module].share[head]) if module in scored else 0.0)
        for module in modules
        for head in range(len(figures[module].entropy))
    ]
    n = figures[modules[0]].n_examples
    rule = N_("{what} (mean of {n} examples)") if n > 1 else N_("{what} (this example)")
    return HeadLabels(
        tuple(head_statistics.describe(*head, is_short=True) for head in heads),
        tuple(N_(rule, what=head_statistics.describe(*head), n=n) for head in heads),
        n,
    )
