"""Train in this process: a new run or a resumed one."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tfm_core.choices.config import Experiment, from_query, to_query
from tfm_core.choices.config.advice import advice_on, advice_on_moving
from tfm_core.cli.commands import FAILED, INTERRUPTED
from tfm_core.cli.words import STATES, _
from tfm_core.facts.learning_rate import advised
from tfm_core.runs import Run, RunStore
from tfm_core.runs.disk.locks import RunLock
from tfm_core.runs.figures import figures, summary
from tfm_core.runs.queue import limits
from tfm_core.runs.status import Status
from tfm_core.sentences import N_, Paragraph, StudentError

if TYPE_CHECKING:
    from tfm_core.training.events import Event


def train(options: argparse.Namespace) -> int:
    """Train a preset, with changes or without."""
    experiment = chosen_experiment(options.preset, options.set, options.seed)
    check_device(options.device)
    limits.check_memory(experiment, options.device)
    if not options.quiet:
        for note in advised(experiment):
            print(f"{note.field}: {_(note.sentence)}", file=sys.stderr)
        if (slow := advice_on(options.device, experiment.trained)) is not None:
            print(_(slow), file=sys.stderr)
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
    """Resume a run that ended early."""
    store = RunStore()
    run = store.get(options.id)
    status = run.status
    if run.meta.recorded:
        raise StudentError("This run comes with the app and cannot be resumed.")
    _check_trained_here(run)
    if status.state != "queued" and not status.can_resume:
        raise StudentError(
            "The run {id} is {state}. There is nothing to resume.",
            id=run.id,
            state=STATES[status.state],
        )
    _check_move(run.experiment, run.meta.device, options)
    if options.device is not None:
        with RunLock(run.folder):
            run.move_to(options.device)
    return _execute(run, options)


def further(options: argparse.Namespace) -> int:
    """Train a copy of a finished run for longer."""
    store = RunStore()
    parent = store.get(options.id)
    _check_trained_here(parent)
    before = "cpu" if parent.meta.recorded else parent.meta.device
    _check_move(parent.experiment, before, options)
    copy = store.fork(
        parent.id, steps=options.steps, device=options.device, stays_low=options.keep_rate_low
    )
    return _execute(copy, options)


def _check_trained_here(run: Run) -> None:
    """Raise StudentError for a damaged run, and for a loop of another program."""
    if run.problem is not None:
        raise StudentError(run.problem)
    if run.experiment.training is None and run.status.state != "opened":
        raise StudentError(Paragraph("pretrained/foreign-steering"))


def _check_move(experiment: Experiment, before: str, options: argparse.Namespace) -> None:
    """Print what another device changes. Raises ValueError if the device does not fit."""
    device = options.device or before
    check_device(device)
    limits.check_memory(experiment, device)
    if device != before and not options.quiet:
        print(_(advice_on_moving(before, device, experiment)), file=sys.stderr)


def _execute(run: Run, options: argparse.Namespace) -> int:
    """Train a run in this process, show its progress, and print how it ended."""
    from tfm_core.runs.process.execute import execute
    from tfm_core.runs.process.requests import BY_HAND, Control

    control = Control(run.folder)
    with Bar(run.experiment.trained.steps, is_shown=not options.quiet) as bar:

        def on_interrupt(*_signal: object) -> None:
            if not bar.has_begun or control.stop_reason is not None:
                raise KeyboardInterrupt
            control.stop_reason = BY_HAND

        before = signal.signal(signal.SIGINT, on_interrupt)
        try:
            status = execute(run, control, bar.on_event)
        finally:
            signal.signal(signal.SIGINT, before)
    return _report(run, status, options)


def _report(run: Run, status: Status, options: argparse.Namespace) -> int:
    """Print how a run ended; return the exit code."""
    values = figures(run)
    if status.state == "failed":
        print(_(status.reason), file=sys.stderr)
    elif status.state == "stopped":
        print(
            _(
                "Stopped at step {step:,} of {total:,}. Resume with: {command}",
                step=status.step,
                total=status.total_steps,
                command=f"python -m tfm_core resume {run.id}",
            ),
            file=sys.stderr,
        )
    elif status.reason and not options.quiet:
        print(_(status.reason), file=sys.stderr)
    if status.state == "finished" and not options.quiet and not options.json:
        print(summary(values))
    if options.json:
        print(json.dumps(values))
    return {"finished": 0, "stopped": INTERRUPTED}.get(status.state, FAILED)


_THREADS_AUTO = "auto"


def chosen_experiment(preset: str | None, changes: list[str], seed: int | None) -> Experiment:
    """Return a preset's experiment with changes. Raises ValueError, in a sentence."""
    query = {} if preset is None else to_query(_preset(preset).experiment)
    for change in changes:
        setting, equals, value = change.partition("=")
        if not equals or not setting:
            raise StudentError(
                "--set takes SETTING=VALUE, such as model.d_model=128, not {change!r}.",
                change=change,
            )
        query[setting.strip()] = value.strip()
    if seed is not None:
        query["seed"] = str(seed)
    if not query:
        raise StudentError("Choose what to train: --preset NAME or --set task.name=copy.")
    return from_query(query)


def preset_label(name: str | None) -> str | None:
    """Return the label of a preset."""
    return None if name is None else str(_preset(name).label)


def _preset(name: str) -> Any:
    from tfm_core.choices.presets import PRESETS

    if name not in PRESETS:
        raise StudentError(
            "There is no preset {name!r}. Choose one of {presets}.",
            name=name,
            presets=", ".join(PRESETS),
        )
    return PRESETS[name]


def check_device(name: str) -> None:
    """Raise ValueError for a device that is not there."""
    from tfm_core.training.devices import resolve

    resolve(name)


def chosen_threads(text: str) -> int:
    """Return the number of threads asked for. Raises ValueError, in a sentence."""
    from tfm_core.training import devices

    if text == _THREADS_AUTO:
        return devices.fastest_threads(devices.measure_threads())
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 1024:
        raise StudentError("--threads is {text!r}; use a number from 1, or auto.", text=text)
    return int(text)


class Bar:
    """Shows steps, loss and the last validation; only where standard error is a terminal."""

    def __init__(self, total: int, *, is_shown: bool) -> None:
        """Prepare for ``total`` steps."""
        self.has_begun = False
        self._facts: dict[str, str] = {}
        from tqdm import tqdm

        self._bar: tqdm[Any] = tqdm(
            total=total, unit="step", disable=None if is_shown else True, dynamic_ncols=True
        )

    def __enter__(self) -> Bar:
        """Return the bar."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave it as it stands."""
        self._bar.close()

    def on_event(self, event: Event) -> None:
        """Show an event of the training."""
        from tfm_core.training.events import Compiled, Measured, Started, Step

        if isinstance(event, Started):
            self.has_begun = True
            if event.remark and not self._bar.disable:
                self._bar.write(_(event.remark), file=sys.stderr)
            self._bar.update(event.step)
        elif isinstance(event, Compiled):
            said = event.reason or N_("torch.compile took {n:.1f} s.", n=event.seconds)
            if not self._bar.disable:
                self._bar.write(_(said), file=sys.stderr)
        elif isinstance(event, Measured):
            is_average = (event.split, event.weights) == ("validation", "average")
            self._facts["averaged" if is_average else event.split] = f"{event.accuracy:.1%}"
        elif isinstance(event, Step):
            self._facts["loss"] = f"{event.loss:.3f}"
            self._bar.set_postfix(self._facts, refresh=False)
            self._bar.update(1)
