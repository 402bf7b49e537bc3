"""Runs benchmarks one after the other, and sums up in one table which goals were met."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import results
from benchmarks.goals import GOALS
from benchmarks.report import Figure, Skipped, Table
from benchmarks.results import Result


@dataclass(slots=True)
class Outcome:
    """What benchmarks gave: figures by goal, and in sentences what broke and what was left out."""

    modules: list[str] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    def missing(self) -> list[str]:
        """Return the goals of what was run that no table spoke of."""
        return [
            goal.name
            for goal in GOALS.values()
            if goal.module in self.modules and goal.name not in self.figures
        ]


def run(
    name: str, module: str, outcome: Outcome, *, quick: bool, only: Sequence[str] = ()
) -> Iterator[Table | Skipped]:
    """Yield the tables of a benchmark; one that breaks is a sentence in the outcome.

    only: of ``accuracy``, the goals that are wanted.
    """
    if not only:
        outcome.modules.append(name)
    try:
        measure = importlib.import_module(module).tables
        for table in measure(quick=quick, only=only) if only else measure(quick=quick):
            if isinstance(table, Skipped):
                outcome.skipped.append(table)
            else:
                for unknown in set(table.reached) - set(GOALS):
                    raise KeyError(f"there is no goal {unknown!r} in benchmarks/goals.py")
                outcome.figures |= table.reached
            yield table
    except Exception as error:  # the others are worth their figures
        outcome.broken[name] = sentence(error)


def sentence(error: Exception) -> str:
    """Return an error's message in one line, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "benchmarks" in Path(frame.filename).parts] or frames
    where = f" ({Path(ours[-1].filename).name}, line {ours[-1].lineno})" if ours else ""
    words = next((line for line in str(error).splitlines() if line.strip()), "no words")
    return f"{type(error).__name__}: {words.strip().rstrip('.')}{where}."


def table(outcome: Outcome, before: Mapping[str, Result], *, quick: bool) -> Table:
    """Return one row for each goal of what was run: measured, wanted, verdict, and the change.

    before: the results that are kept.
    """
    changed = results.changes(before, outcome.figures.items())
    rows = []
    for name, goal in GOALS.items():
        if name in outcome.figures:
            figure = outcome.figures[name]
            verdict = results.verdict(name, figure)
            if quick:
                verdict = "a few steps don't tell" if goal.training else f"{verdict}, roughly"
            rows.append(
                [name, results.show(name, figure), str(goal), verdict, changed.get(name, "")]
            )
        elif goal.module in outcome.modules:
            rows.append([name, "not measured", str(goal), "", ""])
    n_met = sum(row[3] == "met" for row in rows)
    notes = [] if not quick else ["Quick: few rounds and short runs; nothing of it is kept."]
    notes += [f"{name} broke down: {words}" for name, words in outcome.broken.items()]
    notes += [f"Left out: {one.title}, for {one.reason}" for one in outcome.skipped]
    title = "Summary" if quick else f"Summary: {n_met} of {len(rows)} goals are met"
    return Table(
        title,
        ["goal", "measured", "wanted", "", "last kept"],
        rows,
        ["\n".join(f"- {note}" for note in notes)] if notes else [],
    )
