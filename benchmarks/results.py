"""``RESULTS.md``: what was measured last for each goal, on which machine, when and of which commit.

It is a table that people read, and the next run reads it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.goals import GOALS
from benchmarks.report import Figure, Table

PATH = Path(__file__).with_name("RESULTS.md")
COLUMNS = ("goal", "of what", "measured", "seeds", "wanted", "", "machine", "date", "commit")
_HEAD = """# What was measured last

`python -m benchmarks` writes this file, and a part of it (`python -m benchmarks NAME`) its own
rows. A training is the mean of its seeds on one CPU thread, or the worst of them where “every seed”
is said. Settings are chosen with seeds 0 to 2 and reported with seeds 3 to 7, or 11 to 15 where
those had been tried, too; rows of seeds 0 to 2 are older than this rule. The command prints the
tables, with what stands beside these figures.

"""
_FIGURE = re.compile(r"(-?[\d.]+(?:e[+-]?\d+)?)(?: in ([\d.]+) CPU-s)?")


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured for a goal once. date: ISO 8601; commit: its short name."""

    figure: Figure
    machine: str
    date: str
    commit: str


def show(name: str, figure: Figure) -> str:
    """Return a figure with the unit of its goal, in five digits."""
    seconds = "" if figure.seconds is None else f" in {figure.seconds:.1f} CPU-s"
    return f"{figure.value:.5g}{GOALS[name].target.unit}{seconds}"


def verdict(name: str, figure: Figure) -> str:
    """Say in a word whether a figure, as it is shown, is enough."""
    shown = _parsed(name, show(name, figure))
    return "met" if GOALS[name].is_met(shown.value, shown.seconds) else "missed"


def merged(before: Mapping[str, Result], now: Mapping[str, Result]) -> dict[str, Result]:
    """Return the newest result of every goal, in the order of the goals; others are forgotten."""
    both = {**before, **now}
    return {name: both[name] for name in GOALS if name in both}


def text(results: Mapping[str, Result]) -> str:
    """Return the file's text, with the verdicts of today's goals."""
    rows = []
    for name, one in results.items():
        goal = GOALS[name]
        figure = one.figure
        rows.append(
            [
                name,
                goal.what,
                show(name, figure),
                figure.seeds,
                str(goal),
                verdict(name, figure),
                one.machine,
                one.date,
                one.commit,
            ]
        )
    n_met = sum(row[5] == "met" for row in rows)
    table = Table(f"{n_met} of {len(GOALS)} goals are met", COLUMNS, rows)
    missing = [f"`{name}`" for name in GOALS if name not in results]
    rest = f"\n\nNot measured yet: {', '.join(missing)}." if missing else ""
    return f"{_HEAD}{table}{rest}\n"


def parse(written: str) -> dict[str, Result]:
    """Return the results in a file, without those of former goals."""
    results = {}
    for line in written.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == len(COLUMNS) and cells[0] in GOALS:
            name, _what, measured, seeds, _wanted, _verdict, machine, date, commit = cells
            figure = replace(_parsed(name, measured), seeds=seeds)
            results[name] = Result(figure, machine, date, commit)
    return results


def _parsed(name: str, shown: str) -> Figure:
    found = _FIGURE.fullmatch(shown.replace(GOALS[name].target.unit or "\0", "", 1))
    if found is None:
        raise ValueError(
            f"RESULTS.md: {shown!r} is not a figure of the goal {name!r}; "
            f"{show(name, Figure(1.5))!r} would be."
        )
    value, seconds = found.groups()
    return Figure(float(value), None if seconds is None else float(seconds))


def read(path: Path) -> dict[str, Result]:
    """Return the stored results; none without a file."""
    return parse(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(results: Mapping[str, Result], path: Path) -> None:
    """Store results beside the others in the file."""
    path.write_text(text(merged(read(path), results)), encoding="utf-8")


def changes(before: Mapping[str, Result], now: Iterable[tuple[str, Figure]]) -> dict[str, str]:
    """Return the change of each goal that was measured before."""
    return {
        name: f"was {show(name, before[name].figure)}, now {show(name, figure)}"
        for name, figure in now
        if name in before
    }
