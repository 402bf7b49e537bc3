"""Training in this process: a new run, one that goes on, and as one process of several."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time

from tfm_core.cli.choices import check_device, chosen_experiment, chosen_threads, preset_label
from tfm_core.cli.common import FAILED, INTERRUPTED, compare
from tfm_core.config import Experiment
from tfm_core.config.advice import advice_on, advice_on_moving
from tfm_core.facts.advised import advised
from tfm_core.runs import Run, RunStore
from tfm_core.runs.backends import job as jobs
from tfm_core.runs.process.identity import STALE_SECONDS, this_host
from tfm_core.runs.queue import claim, resources
from tfm_core.runs.record.figures import figures, summary
from tfm_core.runs.remote import mirror, ownership, takeover
from tfm_core.runs.status import Status
from tfm_core.runs.store import RunNotFound
from tfm_core.sentences import StudentError

_WATCH_SECONDS = 0.2


def train(options: argparse.Namespace) -> int:
    """Train a preset, with changes or without."""
    experiment = chosen_experiment(options.preset, options.set, options.seed)
    check_device(options.device)
    resources.check(experiment, options.device)
    compare()
    if not options.quiet:
        for said in advised(experiment):
            print(said.sentence, file=sys.stderr)
        if (slow := advice_on(options.device, experiment.training)) is not None:
            print(slow, file=sys.stderr)
    run = RunStore().create(
        experiment,
        device=options.device,
        threads=chosen_threads(options.threads),
        name=options.name or preset_label(options.preset),
        preset=options.preset,
        state="starting",
    )
    return _execute(run, options)


def resume(options: argparse.Namespace) -> int:
    """Go on with a run that ended early."""
    if options.job is not None:
        return _work_as_job(options)
    store = RunStore()
    compare()
    run = store.get(options.id)
    with mirror.mirroring(store.root):
        status = _watched(run)
    if run.meta.recorded:
        raise StudentError("This run comes with the app and cannot be resumed.")
    if run.problem is not None:
        raise StudentError(run.problem)
    if status.state != "queued" and not status.can_resume:
        raise StudentError(
            "The run {id} is {state}. There is nothing to resume.",
            id=run.id,
            state=status.state,
        )
    _check_move(run.experiment, run.meta.device, options)
    takeover.take_over(run.folder)
    if options.device is not None:
        with claim.moment(run.folder):
            run.move_to(options.device)
    return _execute(run, options)


def further(options: argparse.Namespace) -> int:
    """Train a copy of a run that is over further."""
    store = RunStore()
    compare()
    parent = store.get(options.id)
    if parent.problem is not None:
        raise StudentError(parent.problem)
    before = "cpu" if parent.meta.recorded else parent.meta.device
    _check_move(parent.experiment, before, options)
    copy = store.fork(
        parent.id, steps=options.steps, device=options.device, stays_low=options.keep_rate_low
    )
    return _execute(copy, options)


def _check_move(experiment: Experiment, before: str, options: argparse.Namespace) -> None:
    """Say what another device changes. Raises ValueError where a run cannot go on on the one."""
    device = options.device or before
    check_device(device)
    resources.check(experiment, device)
    if device != before and not options.quiet:
        print(advice_on_moving(before, device, experiment), file=sys.stderr)


def _work_as_job(options: argparse.Namespace) -> int:
    """Train a run that its server handed to a cluster, like a worker of the server's own."""
    from tfm_core.runs.process import worker

    store = RunStore()
    try:
        run = store.get(options.id)
    except RunNotFound:
        raise StudentError(
            "{host} finds no run {id} in {root}. Share TFM_RUNS_DIR with the cluster.",
            host=this_host(),
            id=options.id,
            root=str(store.root),
        ) from None
    jobs.check(run.folder, run.status, options.job)  # before the run's log hides what is said
    return worker.work(
        run.folder,
        max_seconds=options.max_seconds,
        max_pause=options.max_pause,
        job=options.job,
    )


def n_processes() -> int:
    """Return how many processes torchrun has started; 1 without it."""
    return int(os.environ["WORLD_SIZE"]) if "TORCHELASTIC_RUN_ID" in os.environ else 1


def together(options: argparse.Namespace) -> int:
    """Run a command as one of the processes that torchrun has started.

    The first does all that one alone does; the others train along.
    """
    from tfm_core.runs.process.execute import follow
    from tfm_core.training.share import joined

    with joined() as share:
        if share.is_first:
            options.share = share
            try:
                return int(options.command(options))
            finally:
                if options.share is not None:  # it was refused, and there is no run
                    share.told(None)
        for kind in (signal.SIGINT, signal.SIGTERM):
            signal.signal(kind, signal.SIG_IGN)  # the first one stops, and says so
        run_id = share.told(None)
        if run_id is not None:
            try:
                follow(RunStore().get(run_id), share)
            except ValueError:  # the first one says it
                return FAILED
            except RuntimeError as error:
                print(f"Process {share.rank}: {str(error).splitlines()[0]}", file=sys.stderr)
                return FAILED
    return 0


def _watched(run: Run) -> Status:
    """Return how a run stands; one on another machine is watched until that can be told."""
    status = run.status
    if status.is_alive and status.host != this_host():
        print(
            f"{status.host} trained this run last; looking whether its heart still beats, for "
            f"at most {STALE_SECONDS:.0f} seconds.",
            file=sys.stderr,
        )
    beat = status.heartbeat
    while status.is_alive and status.host != this_host() and status.heartbeat == beat:
        time.sleep(_WATCH_SECONDS)
        status = run.status
    return status


def _execute(run: Run, options: argparse.Namespace) -> int:
    """Train a run in this process, show how it goes, and say how it ended."""
    from tfm_core.runs.bar import Bar
    from tfm_core.runs.process.execute import execute
    from tfm_core.runs.process.requests import BY_HAND, Control

    control, share = Control(run.folder), options.share
    if share is not None:
        share.told(run.id)
        options.share = None
    with Bar(run.experiment.training.steps, is_shown=not options.quiet) as bar:

        def on_interrupt(*_: object) -> None:
            if not bar.has_begun or (control.stop_reason is not None and share is None):
                raise KeyboardInterrupt
            control.stop_reason = BY_HAND

        # torchrun passes on what it is sent, once more
        kinds = (signal.SIGINT,) if share is None else (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(kind, on_interrupt) for kind in kinds]
        try:
            status = execute(run, control, bar.on_event, share=share)
        finally:
            for kind, handler in zip(kinds, before, strict=True):
                signal.signal(kind, handler)
    unpublished = ownership.trouble(run.folder.parent)
    if unpublished is not None:
        print(unpublished, file=sys.stderr)
    values = figures(run)
    if status.state == "failed":
        print(status.reason, file=sys.stderr)
    elif status.state == "stopped":
        print(
            f"Stopped at step {status.step:,} of {status.total_steps:,}. Go on with: "
            f"python -m tfm_core resume {run.id}",
            file=sys.stderr,
        )
    elif status.reason and not options.quiet:
        print(status.reason, file=sys.stderr)
    if status.state == "finished" and not options.quiet and not options.json:
        print(summary(values))
    if options.json:
        print(json.dumps(values))
    return {"finished": 0, "stopped": INTERRUPTED}.get(status.state, FAILED)


TRAINING = (train, resume, further)
"""The commands that torchrun may start several processes of."""
