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

from benchmarks import kept, reliability, summary

# name: the module that has ``tables(quick)``, and what it measures
BENCHMARKS: dict[str, tuple[str, str]] = {
    "accuracy": ("benchmarks.accuracy", "what the presets reach, in CPU-seconds of training"),
    "beginner": ("benchmarks.beginner", "a training step against the loops of a first attempt"),
    "batching": ("benchmarks.batching", "a batch from the device against a DataLoader"),
    "peers": ("benchmarks.peers", "a training step against other implementations"),
    "decoding": ("benchmarks.decoding", "writing with keys kept against reading the text again"),
    "engine": ("benchmarks.engine", "a step through the whole engine against a bare loop"),
    "attention_grid": ("benchmarks.attention_grid", "all heads, from click to painted"),
    "comparison": ("benchmarks.comparison", "50 runs on one page, until they are painted"),
    "anatomy": ("benchmarks.anatomy", "how fast the pages on the model show a change"),
    "app": ("benchmarks.app", "what watching costs training, and how fast pages answer"),
    "run_list": ("benchmarks.run_list", "how fast the list of a thousand runs opens"),
    "reliability": ("benchmarks.reliability", "what holds when the app is attacked"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables asked for, each as soon as it is measured; return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    attacks = {name: (reliability.module(name), "an attack") for name in reliability.ATTACKS}
    known = {**BENCHMARKS, **attacks}
    for name in options.names:
        if name not in known:
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(known)}")
    from benchmarks.machine import commit, describe, prepare, processor

    prepare()
    print(describe(), flush=True)
    before, outcome = kept.read(options.results), summary.Outcome()
    for name in options.names or BENCHMARKS:
        module, words = known[name]
        print(f"\n## {name}: {words}", flush=True)
        for table in summary.run(name, module, outcome, quick=options.quick):
            print(f"\n{table}", flush=True)
            if not options.quick:
                day = datetime.datetime.now(datetime.UTC).date().isoformat()
                now = {
                    goal: kept.Result(figure, processor(), day, commit())
                    for goal, figure in outcome.figures.items()
                }
                kept.write(now, options.results)  # at once: what comes may be ended
        if name in outcome.broken:
            print(f"\nIt broke down: {outcome.broken[name]}", flush=True)
    print(f"\n{summary.table(outcome, before, quick=options.quick)}\n\n{describe()}", flush=True)
    return 1 if outcome.broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"any of {', '.join(BENCHMARKS)}, or of the "
        f"attacks of reliability: {', '.join(reliability.ATTACKS)}; all if none",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few rounds and short runs: does it work, roughly"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=kept.PATH,
        metavar="FILE",
        help="where results are kept, and those before are found (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
