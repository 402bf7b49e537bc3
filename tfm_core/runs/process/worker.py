"""The worker: a process that trains a run and writes only into its folder.

``--warm`` imports torch, prints ``ready`` and waits for a line of JSON, ``{"folder": ...}``, on its
standard input. After a run it does so again, unless the run failed or may have left something
behind. It ends when the input closes. ``--run FOLDER`` trains one run
that waits, as a job of Ray.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import signal
import sys
import traceback
from pathlib import Path

import psutil

from tfm_core.disk import BINARY
from tfm_core.machine import WORKER_NICENESS
from tfm_core.runs.disk.failures import refusal
from tfm_core.runs.disk.locks import RunLocked
from tfm_core.runs.process.execute import NotWaiting, execute, set_up_torch
from tfm_core.runs.process.identity import this_host
from tfm_core.runs.process.requests import ASKED_TO_END, Control
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.run import Run

MAX_IDLE_BYTES = 2**30
"""A worker that holds more memory ends after its run instead of waiting for the next."""


def main(arguments: list[str] | None = None) -> int:
    """Run a worker; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tfm_core.runs.process.worker", description=__doc__
    )
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--warm", action="store_true", help="get ready and wait for a run")
    group.add_argument(
        "--run", type=Path, metavar="FOLDER", help="train the waiting run in this folder"
    )
    parser.add_argument("--max-seconds", type=float, help="stop after so long")
    parser.add_argument("--max-pause", type=float, help="stop after a pause of so long")
    options = parser.parse_args(arguments)
    if hasattr(os, "nice"):
        os.nice(WORKER_NICENESS)
    if options.run is not None:
        if not waiting_line.waits(options.run):  # before the output goes to the run's log
            print(
                f"{this_host()} finds no waiting run in {options.run}. Share TFM_RUNS_DIR.",
                file=sys.stderr,
            )
            return 1
        limits = {"max_seconds": options.max_seconds, "max_pause": options.max_pause}
        return work(options.run, **limits, only_waiting=True)
    warm_up()
    gc.freeze()  # looking through all that torch holds takes longer than a model's first steps
    orders, answers, errors = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w"), os.dup(2)
    while True:
        with contextlib.suppress(OSError):  # its server may be gone: then there is no order either
            print("ready", file=answers, flush=True)
        gc.collect()
        line = orders.readline()
        if not line.strip():
            return 0
        order = json.loads(line)
        run = Run(Path(order["folder"]))
        limits = {name: order.get(name) for name in ("max_seconds", "max_pause")}
        code = work(run.folder, **limits)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for output in (1, 2):  # no longer the run's log
            os.dup2(errors, output)
        if code or not _is_like_new(run):
            return code


def _is_like_new(run: Run) -> bool:
    """Return whether the next run will be as after a fresh start, and as quick."""
    return (
        run.status.state in {"finished", "stopped"}
        and run.meta.device == "cpu"
        and not run.experiment.trained.compile
        and psutil.Process().memory_info().rss < MAX_IDLE_BYTES
    )


def warm_up() -> None:
    """Import all that training needs, and train a step of texts and one of pictures, with a
    snapshot: that pays what only the first costs.
    """
    set_up_torch(threads=1)
    from tfm_core.choices.config import from_query
    from tfm_core.probe import snapshot
    from tfm_core.training.loop import build, train

    few = {"model.d_model": "8", "task.n_validation": "8", "training.steps": "1"}
    for kind in (
        {"task.name": "copy", "task.size": "2", "task.n_train": "8", "task.n_test": "8"},
        {"model.family": "vit", "training.final_test": "false"},
    ):
        trainer = build(from_query(few | kind), "cpu")
        for _ in train(trainer):
            pass
        snapshot.probe_of(trainer)
        snapshot.take(trainer, 1)


def work(
    folder: Path,
    *,
    max_seconds: float | None = None,
    max_pause: float | None = None,
    only_waiting: bool = False,
) -> int:
    """Train the run in a folder; return 0 when it ended as its status says.

    only_waiting: leave a run alone that does not wait. Otherwise the last line of the output is the
    reason, in a sentence.
    """
    control = Control(folder, max_seconds=max_seconds, max_pause=max_pause)

    def asked_to_end(*_: object) -> None:
        control.stop_reason = ASKED_TO_END

    try:
        _log_to(folder / "worker.log")
        signal.signal(signal.SIGTERM, asked_to_end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the server
        execute(Run(folder), control, only_waiting=only_waiting)
        return 0
    except (RunLocked, NotWaiting) as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        traceback.print_exc()
        print(refusal(error), file=sys.stderr)
        return 1


def _log_to(path: Path) -> None:
    """Send standard output and error, of C libraries too, to a file; the input is closed."""
    sys.stdout.flush()
    sys.stderr.flush()
    log = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | BINARY, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.close(nothing)


if __name__ == "__main__":
    sys.exit(main())
