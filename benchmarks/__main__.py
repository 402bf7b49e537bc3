"""The command line: ``python -m benchmarks [NAME ...] [--quick]`` prints Markdown tables.

Last comes a summary of all goals that were measured, with what changed since they were kept;
without ``--quick`` it is kept in ``benchmarks/RESULTS.md``. The exit code is 1 where a benchmark
broke down; a goal that was missed is no error.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import results, summary
from benchmarks.goals import LEARNING, PEERS

# name: the module that has ``tables(quick)``, and what it measures
BENCHMARKS: dict[str, tuple[str, str]] = {
    "accuracy": ("benchmarks.accuracy", "what the presets reach, in CPU-seconds of training"),
    "beginner": ("benchmarks.beginner", "a training step against the loops of a first attempt"),
    "engine": ("benchmarks.engine", "a step through the whole engine against a bare loop"),
    "in_sight": ("benchmarks.in_sight", "what the first screen of every page holds"),
    "page_speed": ("benchmarks.page_speed", "how long people wait for pages, in a browser"),
    "mutants": ("benchmarks.mutants", "how many planted faults the tests notice"),
}
ON_REQUEST: dict[str, tuple[str, str]] = {
    "presets": ("benchmarks.presets", "what the entries of tfm_core/choices/presets.py may claim"),
}
"""What is measured only where its name is given: it sets no goal."""
TRAINED = (*(goal.name for goal in LEARNING), *PEERS)
"""Goals of accuracy, which may be asked for one by one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the requested tables as soon as each is measured; return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    known = {**BENCHMARKS, **ON_REQUEST}
    for name in options.names:
        if name not in known and name not in TRAINED:
            parser.error(
                f"there is no benchmark {name!r}; there are {'; '.join((*known, *TRAINED))}"
            )
    from benchmarks.timing import describe, prepare

    prepare()
    print(describe(), flush=True)
    before, outcome = results.read(options.results), summary.Outcome()
    only = [name for name in options.names if name in TRAINED]  # in one go: some train the same
    for name in _parts(options.names):
        module, words = known[name]
        print(f"\n## {name}: {words}", flush=True)
        wanted = only if "accuracy" not in options.names and name == "accuracy" else []
        for table in summary.run(name, module, outcome, quick=options.quick, only=wanted):
            print(f"\n{table}", flush=True)
            if not options.quick:
                results.write(
                    _results(outcome), options.results
                )  # at once: what comes may be ended
        if name in outcome.broken:
            print(f"\nIt broke down: {outcome.broken[name]}", flush=True)
    print(f"\n{summary.table(outcome, before, quick=options.quick)}\n\n{describe()}", flush=True)
    return 1 if outcome.broken else 0


def _results(outcome: summary.Outcome) -> dict[str, results.Result]:
    """Return what was measured, with the machine, the day and the commit."""
    from benchmarks.timing import commit, processor

    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    figures = outcome.figures.items()
    return {goal: results.Result(figure, processor(), day, commit()) for goal, figure in figures}


def _parts(names: Sequence[str]) -> list[str]:
    """Return the requested benchmarks, each once; all by default."""
    parts = ("accuracy" if name in TRAINED else name for name in names)
    return list(dict.fromkeys(parts)) or list(BENCHMARKS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"any of {', '.join((*BENCHMARKS, *ON_REQUEST))}, or a goal of accuracy: "
        f"{'; '.join(TRAINED)}; all benchmarks if none",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few rounds and short runs: does it work, roughly"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=results.PATH,
        metavar="FILE",
        help="where results are kept, and those before are found (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
