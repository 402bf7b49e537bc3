"""The command line: train without the app, in the same run folders that the app shows.

Wrong input is one sentence on standard error and exit code 2; a run that failed is exit code 1;
Ctrl-C keeps a checkpoint and is exit code 130.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tfm_core.config import Experiment, from_query, to_query
from tfm_core.config.advice import advice_on, advice_on_moving
from tfm_core.facts.advised import advised
from tfm_core.runs import Run, RunStore, claim, fits, settings
from tfm_core.runs.backends import job as jobs
from tfm_core.runs.elsewhere import mirror, places, takeover
from tfm_core.runs.failures import refusal
from tfm_core.runs.figures import figures, summary
from tfm_core.runs.process import STALE_SECONDS, this_host
from tfm_core.runs.status import Status
from tfm_core.runs.store import RunNotFound
from tfm_core.sentences import StudentError

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130
_THREADS_AUTO = "auto"
_WATCH_SECONDS = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: threads that don't spin
    if isinstance(sys.stdout, io.TextIOWrapper):  # a pipe of Windows knows few characters
        sys.stdout.reconfigure(errors="replace")
    options = _parser().parse_args(arguments)
    if not logging.root.handlers:  # what goes wrong is one sentence, without its traceback
        logging.getLogger("tfm_core").addHandler(logging.NullHandler())
    try:
        if options.command is not _doctor:
            settings.checked()  # a bad one is said before anything begins
        if options.command in (_train, _resume, _further) and _n_processes() > 1:
            return _together(options)
        return int(options.command(options))
    except ValueError as error:
        print(error, file=sys.stderr)
        return WRONG_INPUT
    except BrokenPipeError:  # the reader of a list has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a disk that takes not even the reason why the run ended
        print(refusal(error), file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tfm_core", description=(__doc__ or "").split("\n")[0]
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    train = commands.add_parser("train", help="train a preset, with changes or without")
    train.add_argument("--preset", metavar="NAME", help="where to begin (see presets)")
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="change a setting, as model.d_model=128 or task.name=copy; may be repeated",
    )
    train.add_argument("--seed", type=int, metavar="N", help="another seed, another curve")
    train.add_argument("--device", default="cpu", help="cpu, cuda:0, mps (see devices)")
    train.add_argument(
        "--threads", default="1", metavar="N", help="CPU threads; auto measures which is faster"
    )
    train.add_argument("--name", help="how the run is called in the app")
    train.set_defaults(command=_train)
    _add_output(train)

    resume = commands.add_parser("resume", help="go on with a run that ended early")
    resume.add_argument("id", metavar="ID", help="the id of the run (see runs)")
    resume.add_argument("--device", help="where to go on, if not where it was: cpu, cuda:0, mps")
    resume.add_argument(
        "--job", metavar="NAME", help="as the job of a cluster (see docs/cluster.md)"
    )
    resume.add_argument(
        "--max-seconds", type=float, metavar="S", help="of a job: stop after so long"
    )
    resume.add_argument(
        "--max-pause",
        type=float,
        metavar="S",
        help="of a job: so long it may pause while others wait",
    )
    resume.set_defaults(command=_resume)
    _add_output(resume)

    further = commands.add_parser("further", help="train a copy of a run that is over further")
    further.add_argument("id", metavar="ID", help="the id of the run (see runs)")
    further.add_argument(
        "--steps", type=int, metavar="N", required=True, help="steps in all, the run's own included"
    )
    further.add_argument("--device", help="where to go on, if not where it was: cpu, cuda:0, mps")
    further.add_argument(
        "--keep-rate-low", action="store_true", help="a low constant learning rate, no schedule"
    )
    further.set_defaults(command=_further)
    _add_output(further)

    take = commands.add_parser("export", help="write a run as one zip, which needs no app to read")
    take.add_argument("id", metavar="ID", help="the id of the run (see runs)")
    take.add_argument("--out", metavar="FILE", help="where to write it; here, unless said")
    kinds = take.add_mutually_exclusive_group()
    kinds.add_argument(
        "--tensorboard", action="store_true", help="event files for TensorBoard in place of the zip"
    )
    kinds.add_argument(
        "--onnx", action="store_true", help="the model's forward pass as ONNX in place of the zip"
    )
    kinds.add_argument(
        "--data", action="store_true", help="the set of your own that it learned from goes along"
    )
    take.set_defaults(command=_export)

    bring = commands.add_parser("import", help="make a run of a zip that export has written")
    bring.add_argument("file", metavar="FILE", help="the zip")
    bring.set_defaults(command=_import)

    for name, words, command in (
        ("runs", "list the runs, newest first", _runs),
        ("presets", "list the presets", _presets),
        ("devices", "list the devices of this machine", _devices),
    ):
        lister = commands.add_parser(name, help=words)
        lister.add_argument("--json", action="store_true", help="print JSON")
        lister.set_defaults(command=command)

    doctor = commands.add_parser("doctor", help="check folder, disk, packages and runs")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.add_argument(
        "--mend", action="store_true", help="mend the line and claims, remove leftovers"
    )
    doctor.set_defaults(command=_doctor)
    return parser


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no summary")
    parser.add_argument(
        "--json", action="store_true", help="print the final figures as JSON, on the last line"
    )
    parser.set_defaults(share=None)


def _train(options: argparse.Namespace) -> int:
    experiment = _experiment(options.preset, options.set, options.seed)
    _check_device(options.device)
    fits.check(experiment, options.device)
    _compare()
    if not options.quiet:
        for said in advised(experiment):
            print(said.sentence, file=sys.stderr)
        if (slow := advice_on(options.device, experiment.training)) is not None:
            print(slow, file=sys.stderr)
    run = RunStore().create(
        experiment,
        device=options.device,
        threads=_threads(options.threads),
        name=options.name or _preset_label(options.preset),
        preset=options.preset,
        state="starting",
    )
    return _execute(run, options)


def _resume(options: argparse.Namespace) -> int:
    if options.job is not None:
        return _work_as_job(options)
    store = RunStore()
    _compare()
    run = store.get(options.id)
    with mirror.mirroring(store.root):
        status = _watched(run)
    if run.meta.recorded:
        raise StudentError("This run comes with the app and cannot be resumed.")
    if run.problem is not None:
        raise StudentError(run.problem)
    if status.state != "queued" and not status.can_resume:
        raise StudentError(
            "The run {id} is {state}; there is nothing to resume.",
            id=run.id,
            state=status.state,
        )
    _check_move(run.experiment, run.meta.device, options)
    takeover.own(run.folder)
    if options.device is not None:
        with claim.moment(run.folder):
            run.move_to(options.device)
    return _execute(run, options)


def _further(options: argparse.Namespace) -> int:
    store = RunStore()
    _compare()
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
    _check_device(device)
    fits.check(experiment, device)
    if device != before and not options.quiet:
        print(advice_on_moving(before, device, experiment), file=sys.stderr)


def _work_as_job(options: argparse.Namespace) -> int:
    """Train a run that its server handed to a cluster, like a worker of the server's own."""
    from tfm_core.runs import worker

    store = RunStore()
    try:
        run = store.get(options.id)
    except RunNotFound:
        raise StudentError(
            "{host} sees no run {id} in {root}: a job needs the folder of runs of its server, on a "
            "disk that both share (TFM_RUNS_DIR).",
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


def _n_processes() -> int:
    """Return how many processes torchrun has started; 1 without it."""
    return int(os.environ["WORLD_SIZE"]) if "TORCHELASTIC_RUN_ID" in os.environ else 1


def _together(options: argparse.Namespace) -> int:
    """Run a command as one of the processes that torchrun has started.

    The first does all that one alone does; the others train along.
    """
    from tfm_core.runs.execute import follow
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


def _compare() -> None:
    """Publish and fetch runs where there is a store (TFM_RUNS_URL); say what keeps it from that."""
    trouble = mirror.once(RunStore().root)
    if trouble is not None:
        print(trouble, file=sys.stderr)


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
    from tfm_core.runs.control import BY_HAND, Control
    from tfm_core.runs.execute import execute

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
    unpublished = places.trouble(run.folder.parent)
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


def _runs(options: argparse.Namespace) -> int:
    rows, store = [], RunStore()
    _compare()
    with contextlib.suppress(FileNotFoundError):  # no run was made yet
        os.listdir(store.root)  # a folder that nobody may look into is not one without runs
    for run in store.list():
        status = run.status
        rows.append(
            {
                "id": run.id,
                "state": "damaged" if run.problem else status.state,
                "step": status.step,
                "total_steps": status.total_steps,
                "name": run.meta.name,
                "created": run.meta.created,
                "problem": run.damage,
            }
        )
    if options.json:
        print(json.dumps(rows))
        return 0
    for row in rows:
        progress = f"{row['step']}/{row['total_steps']}"
        print(f"{row['id']:<18} {row['state']:<12} {progress:>13}  {row['name']}")
        if row["problem"]:
            print(f"{'':<18} {row['problem']}")
    if not rows:
        print("There are no runs yet: python -m tfm_core train --preset copy")
    return 0


def _export(options: argparse.Namespace) -> int:
    """Write a run as a file; what lies there already is replaced once the new one is whole."""
    from tfm_core.export import bundle, tensorboard
    from tfm_core.runs.atomic import write_bytes

    _compare()
    run = RunStore().get(options.id)
    make: Callable[[Run], bytes] = partial(bundle.bundle, with_set=options.data)
    name = bundle.file_name(run)
    if options.tensorboard:
        make, name = tensorboard.bundle, tensorboard.file_name(run)
    elif options.onnx:
        from tfm_core.export import onnx

        make, name = onnx.bundle, onnx.file_name(run)
    path = Path(options.out or name)
    if path.is_dir():
        path /= name
    content = make(run)
    write_bytes(path, content)
    print(path)
    return 0


def _import(options: argparse.Namespace) -> int:
    from tfm_core.export.take_in import take_in

    path = Path(options.file)
    if not path.is_file():
        raise StudentError("There is no file {path}.", path=str(path))
    with path.open("rb") as file:
        run = take_in(file, RunStore())
    _compare()
    print(run.id)
    return 0


def _presets(options: argparse.Namespace) -> int:
    from tfm_core.presets import PRESETS

    if options.json:
        rows = [
            {"name": preset.name, "label": preset.label, "seconds": preset.seconds}
            for preset in PRESETS.values()
        ]
        print(json.dumps(rows))
        return 0
    for name, preset in PRESETS.items():
        print(f"{name:<18} {preset.seconds:>6.0f} s  {preset.label}")
    return 0


def _devices(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from tfm_core.training.devices import devices

    known = devices()
    if options.json:
        print(json.dumps([asdict(device) for device in known]))
        return 0
    for device in known:
        if device.available:
            free = f"{(device.memory_free or 0) / 2**30:.1f} GiB free"
            print(f"{device.name:<8} {device.label}, {free}")
        else:
            print(f"{device.name:<8} not there: {device.reason}")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from tfm_core.doctor import examine

    found = []
    for finding in examine(mends=options.mend):
        found.append(finding)
        if not options.json:
            print(finding, flush=True)
    if options.json:
        print(json.dumps([asdict(finding) for finding in found]))
    return FAILED if any(finding.level == "problem" for finding in found) else 0


def _experiment(preset: str | None, changes: list[str], seed: int | None) -> Experiment:
    """Return a preset's experiment with changes. Raises ValueError, in a sentence."""
    query = {} if preset is None else to_query(_preset(preset).experiment)
    for change in changes:
        setting, equals, value = change.partition("=")
        if not equals or not setting:
            raise StudentError(
                "--set takes SETTING=VALUE, as model.d_model=128, not {change!r}.",
                change=change,
            )
        query[setting.strip()] = value.strip()
    if seed is not None:
        query["seed"] = str(seed)
    if not query:
        raise StudentError("Say what to train: --preset NAME, or --set task.name=copy.")
    return from_query(query)


def _preset(name: str) -> Any:
    from tfm_core.presets import PRESETS

    if name not in PRESETS:
        raise StudentError(
            "There is no preset {name!r}; choose one of {presets}.",
            name=name,
            presets=", ".join(PRESETS),
        )
    return PRESETS[name]


def _preset_label(name: str | None) -> str | None:
    return None if name is None else str(_preset(name).label)


def _check_device(name: str) -> None:
    from tfm_core.training.devices import resolve

    resolve(name)


def _threads(text: str) -> int:
    """Return the number of threads asked for. Raises ValueError, in a sentence."""
    from tfm_core.training import devices

    if text == _THREADS_AUTO:
        return devices.fastest_threads(devices.measure_threads())
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 1024:
        raise StudentError(
            "--threads is {text!r}, but must be a number from 1, or auto.", text=text
        )
    return int(text)
