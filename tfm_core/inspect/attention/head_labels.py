"""What each head does, in a few words, and which head to open on.

Figures are means over the examples in the snapshots, so a head has the same one in every view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from tfm_core.choices.config import Experiment
from tfm_core.inspect.attention import alignment, head_statistics, idle_heads
from tfm_core.inspect.attention.alignment import AlignmentScore, best_of, can_be_scored, score
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.head_statistics import HeadStatistics
from tfm_core.probe.labels import layer_of, modules_by_kind
from tfm_core.runs.record.snapshots import snapshot_path
from tfm_core.runs.run import Run
from tfm_core.sentences import N_


@dataclass(frozen=True, slots=True)
class HeadLabels:
    """What the heads of a kind of attention do, short for a small map, and whole.

    n_examples: how many examples they are the mean of.
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
    """Return the labels of a kind of attention on one example."""
    modules = modules_by_kind(experiment)[kind]
    scored: dict[str, AlignmentScore] = {}
    for module in set(modules) & set(alignment.scored_modules(experiment)):
        weights, mask = example.attention[module][None], example.masks[module][None]
        try:
            scored[module] = alignment.score_maps(experiment, module, [example.item], weights, mask)
        except ValueError:  # the user's own example has no known truth
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


TELLING = 4
"""Heads that a small stage shows."""


def telling_heads(run: Run, step: int, kind: str) -> tuple[int, ...]:
    """Return the heads of a kind of attention that show most at a snapshot, the best first.

    They are numbered row by row. The largest share of attention on the true source words, else on
    a role, comes first, then the fewest keys. Empty where nothing was recorded.
    """
    try:
        run.snapshot(step)
        changed = snapshot_path(run.folder, step).stat().st_mtime_ns
    except (OSError, ValueError):  # damaged
        return ()
    scored = alignment.of_step(run.folder, step, changed)
    figures = head_statistics.of_step(run.folder, step, changed)
    modules = modules_by_kind(run.experiment)[kind]
    if any(module not in figures for module in modules):
        return ()
    worth = []
    for module in modules:
        stats = figures[module]
        for head, entropy in enumerate(stats.entropy):
            role = head_statistics.leading_role(stats, head)
            share = float(stats.shares[role][head]) if role is not None else 0.0
            if module in scored:
                share = float(scored[module].share[head])
            worth.append((share, -float(entropy)))
    return tuple(sorted(range(len(worth)), key=worth.__getitem__, reverse=True)[:TELLING])


HeadIndex = tuple[int, int]
"""Layer and head, from 0."""


def first_heads(run: Run) -> Mapping[str, HeadIndex]:
    """Return the head to open on for each kind of attention, by the last snapshot."""
    try:
        step = run.snapshot_steps()[-1]
        run.snapshot(step)
        changed = snapshot_path(run.folder, step).stat().st_mtime_ns
        return _first_heads(run.folder, step, changed)
    except (OSError, ValueError, LookupError):  # being written, damaged or without maps
        return {}


@lru_cache(maxsize=64)
def _first_heads(folder: Path, step: int, changed: int) -> Mapping[str, HeadIndex]:
    run = Run(folder)
    scores = alignment.of_step(folder, step, changed)
    differences = idle_heads.of_snapshot(run.experiment, run.probe(), run.snapshot(step))
    first = {}
    for kind, modules in modules_by_kind(run.experiment).items():
        if all(module in scores for module in modules):
            best = alignment.best_of({module: scores[module] for module in modules})
        else:
            kept = {name: differences[name].constant for name in modules if name in differences}
            best = max(
                ((name, int(np.argmax(moved))) for name, moved in kept.items()),
                key=lambda place: float(kept[place[0]][place[1]]),
                default=None,
            )
        if best is not None:
            first[kind] = (layer_of(best[0]), best[1])
    return first


def aligning_head(run: Run) -> tuple[int, int] | None:
    """Return layer and head, from 0, that align best in the last snapshot; None where unknown."""
    try:
        probe, steps = run.probe(), run.snapshot_steps()
        if not steps or not can_be_scored(run.experiment, probe):
            return None
        scores = score(run.experiment, probe, run.snapshot(steps[-1]))
    except (OSError, ValueError, LookupError):  # being written, or without its maps
        return None
    best = best_of(scores)
    return None if best is None else (layer_of(best[0]), best[1])
