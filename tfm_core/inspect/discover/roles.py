"""The order in which heads take their roles over a training, from the labels of its snapshots.

A role is taken when a head has it at a snapshot and keeps it to the last one. Torch-free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from tfm_core.inspect.attention import alignment, head_statistics
from tfm_core.inspect.attention.head_roles import ROLES
from tfm_core.inspect.attention.head_statistics import (
    ALIGNED,
    NO_CHOICE,
    SPREAD,
    UNCLEAR,
    describe,
    role_of,
)
from tfm_core.inspect.knockouts.measure import can_measure, measured
from tfm_core.inspect.knockouts.parts import SUBLAYERS, Part, heads_of
from tfm_core.probe.labels import kinds_of, layer_of, modules_by_kind
from tfm_core.runs.record.snapshots import snapshot_path
from tfm_core.runs.run import Run
from tfm_core.sentences import N_

WORDS: Mapping[str, str] = {
    ALIGNED: N_("true source words"),
    **{name: role.label for name, role in ROLES.items()},
    SPREAD: N_("evenly spread"),
    NO_CHOICE: N_("no choice"),
    UNCLEAR: N_("unclear"),
}
"""Every role, in words."""
N_KNOCKED = 500
NONE = frozenset({SPREAD, NO_CHOICE, UNCLEAR})
"""What is no role."""


@dataclass(frozen=True, slots=True)
class HeadLine:
    """What a head is at each snapshot. kind, module: of its attention; layer, head: from 0.

    labels: the role and its figure in words.
    """

    kind: str
    module: str
    layer: int
    head: int
    roles: tuple[str, ...]
    labels: tuple[str, ...]

    def taken(self, steps: Sequence[int]) -> int | None:
        """Return the step from which on the head has its last role.

        None where that is no role, or it had it before training. steps: of the snapshots.
        """
        if not self.roles or self.roles[-1] in NONE:
            return None
        n = next((n for n, one in enumerate(self.roles[::-1]) if one != self.roles[-1]), None)
        return None if n is None else steps[len(self.roles) - n]

    @property
    def part(self) -> Part:
        """The head as a part that can be knocked out."""
        stack, _rest = self.module.split(".", 1)
        name = self.module.rsplit(".", 1)[1]
        sublayer = next(short for short, (module, _words) in SUBLAYERS.items() if module == name)
        return Part(
            "head", "encoder" if stack == "encoder" else "decoder", self.layer, sublayer, self.head
        )


@dataclass(frozen=True, slots=True)
class Timeline:
    """The heads of a run over its snapshots, kind by kind, layer by layer."""

    steps: tuple[int, ...]
    heads: tuple[HeadLine, ...]

    def first(self) -> dict[str, tuple[int, HeadLine]]:
        """Return the step at which each role was first taken, and by which head, in order."""
        found: dict[str, tuple[int, HeadLine]] = {}
        for head in self.heads:
            step = head.taken(self.steps)
            role = head.roles[-1] if head.roles else ""
            if step is not None and (role not in found or step < found[role][0]):
                found[role] = (step, head)
        return dict(sorted(found.items(), key=lambda pair: pair[1][0]))


def timeline(run: Run) -> Timeline:
    """Return what each head of a run is at each snapshot. Raises ValueError for a damaged one."""
    steps, by_kind = tuple(run.snapshot_steps()), modules_by_kind(run.experiment)
    found: dict[tuple[str, str, int], list[tuple[str, str]]] = {}
    kept = []
    for step in steps:
        run.snapshot(step)  # says in a sentence what is wrong with it
        changed = snapshot_path(run.folder, step).stat().st_mtime_ns
        figures = head_statistics.of_step(run.folder, step, changed)
        scored = alignment.of_step(run.folder, step, changed)
        if not figures:
            continue
        kept.append(step)
        for kind, modules in by_kind.items():
            for module in modules:
                stats, score = figures[module], scored.get(module)
                for head in range(len(stats.entropy)):
                    aligned = 0.0 if score is None else float(score.share[head])
                    pair = (role_of(stats, head, aligned), describe(stats, head, aligned))
                    found.setdefault((kind, module, head), []).append(pair)
    heads = (
        HeadLine(kind, module, layer_of(module), head, *map(tuple, zip(*pairs, strict=True)))
        for (kind, module, head), pairs in found.items()
    )
    return Timeline(tuple(kept), tuple(heads))


@dataclass(frozen=True, slots=True)
class Taken:
    """When a role is first taken, over several runs: mean and standard deviation of the steps.

    n: the runs in which a head takes it.
    """

    role: str
    step: float
    spread: float
    n: int


def order(lines: Iterable[Timeline]) -> tuple[Taken, ...]:
    """Return when each role is first taken in some runs, the earliest first."""
    steps: dict[str, list[int]] = {}
    for one in lines:
        for role, (step, _head) in one.first().items():
            steps.setdefault(role, []).append(step)
    found = (
        Taken(role, mean(known), stdev(known) if len(known) > 1 else 0.0, len(known))
        for role, known in steps.items()
    )
    return tuple(sorted(found, key=lambda one: one.step))


def attention_words(run: Run) -> dict[str, str]:
    """Return the short label of each kind of attention of a run's model."""
    return {name: kind.short for name, kind in kinds_of(run.experiment).items()}


def can_knock(run: Run) -> bool:
    """Whether heads of a run can be knocked out, and what is right then measured."""
    return bool(heads_of(run.experiment)) and can_measure(run)


def without(run: Run, head: HeadLine | None) -> float:
    """Return the share right where a head gives its mean; None: of the whole model.

    Raises ValueError.
    """
    parts = [] if head is None else [head.part]
    return measured(run, parts, "mean", N_KNOCKED).accuracy
