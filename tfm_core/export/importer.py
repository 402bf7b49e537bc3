"""Importing a run: every part of its zip is checked against the experiment.

Nothing in it is trusted. What is not a run of this app is refused, and nothing of it stays.
Weights and events are written anew; examples and snapshots are read as the app reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from packaging.version import InvalidVersion, Version

import tfm_core
from tfm_core.choices.config import ConfigError, Experiment, TunedConfig, from_json
from tfm_core.data.opened_folder import CONFIG
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.sets import Prepared
from tfm_core.export import layout
from tfm_core.export.archive import MAX_UNPACKED, Archive, Refused
from tfm_core.export.exports import Progress
from tfm_core.export.set_in import set_in, vocabulary_in
from tfm_core.export.weights_in import checkpoints, expected_shapes
from tfm_core.reading import MAX_STEP_NUMBER, is_line, is_number, is_whole, json_of
from tfm_core.runs import labels, snapshots, thinned
from tfm_core.runs.curves import EventReader
from tfm_core.runs.disk.atomic import write_bytes, write_json
from tfm_core.runs.labels import MAX_NAME, Labels, Origin
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, Status
from tfm_core.runs.store import RunStore
from tfm_core.sentences import N_, Paragraph, StudentError
from tfm_core.stored import Device, Moment, Step, Stored, WrongValue, line, number, text, whole
from tfm_core.training.devices import usable_cores

_MAX_TEXT = 2**24  # bytes of what is JSON
_MAX_EVENTS = 2**26
_EVENTS_A_STEP = 4  # a step, its validations, a test
_MAX_EXTRA_EVENTS = 10_000  # what was done again after a break, or came after run.json
_MAX_RESUMES = 1_000
_MAX_SMALL = 2**16
_MAX_REASON = 2_000
_STATES: dict[str, State] = {"finished": "finished", "failed": "failed", "stopped": "stopped"}
_SNAPSHOT_NAME = re.compile(r"(\d{8}|[1-9]\d{8})\.safetensors", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What run.json holds; its step is at most the last one of the experiment."""

    id: Annotated[str, line(MAX_NAME)]
    name: Annotated[str, line(MAX_NAME)]
    created: Moment
    device: Device
    threads: Annotated[int, whole(1, 1024)]
    state: Annotated[str, line(40)]
    step: Step
    epoch: Annotated[float, number(0, 1e9)]
    seconds: Annotated[float, number(0, 1e11)]
    versions: labels.Versions
    preset: Annotated[str, line(MAX_NAME)] | None = None
    reason: Annotated[str, text(_MAX_REASON)] | None = None
    total_steps: Step = 0
    data: labels.DataName = ""
    tags: labels.Tags = ()
    note: labels.Note = ""
    group: labels.Group | None = None


_STORED = Stored(_Facts, layout.FACTS)


def import_run(
    file: BinaryIO,
    store: RunStore,
    *,
    owner: str | None = None,
    owner_name: str | None = None,
    limits: Limits | None = None,
    most: int = MAX_UNPACKED,
    progress: Progress | None = None,
    keep: Callable[[Prepared], object] | None = None,
) -> Run:
    """Import a run from a zip for ``owner``. most: bytes that it may unpack to.

    keep: stores the set in the zip for its owner; by default as the host's own set. Raises
    ValueError: Refused for a zip that is none of a run or not whole, LimitReached
    for a run that this server would not train or a set that it has no room for.
    """
    with sets.below(store.root):
        run, prepared = _imported(file, store, owner, owner_name, limits, most, progress)
        if prepared is not None:
            try:
                (keep or sets.write)(prepared)
            except (ValueError, OSError):
                store.discard(run)
                raise
    if progress is not None:
        progress(1.0, N_("Done."))
    return run


def _imported(
    file: BinaryIO,
    store: RunStore,
    owner: str | None,
    owner_name: str | None,
    limits: Limits | None,
    most: int,
    progress: Progress | None,
) -> tuple[Run, Prepared | None]:
    """Return the new run, and the set to keep with it."""
    say = progress or (lambda share, words: None)
    say(0.0, N_("Reading the zip"))
    archive = Archive(file, most=most, marked_by=layout.EXPERIMENT)
    facts = _facts(archive)
    experiment = _experiment(archive, facts)
    if experiment.training is None and experiment.task.name != "foreign":
        raise Refused(Paragraph("pretrained/no-zip"))
    if isinstance(experiment.task, TunedConfig):
        raise Refused(Paragraph("pretrained/no-tuned-zip"))
    if limits is not None:
        limits.check(experiment, n_queued=0)
    stored, status = _checked_facts(facts, experiment)
    say(0.1, N_("Checking the data"))
    prepared = set_in(archive, experiment)
    say(0.2, N_("Checking the weights"))
    with vocabulary_in(archive, experiment) as words:
        checkpoint_files = checkpoints(archive, experiment, status)

    def fill(folder: Path) -> None:
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        source = Origin(stored.id, stored.created, now, stored.device, stored.versions, stored.data)
        labels.write_origin(folder, source)
        sets.write_vocabulary(folder, sets.added_of(experiment.task), words)
        tagged = Labels(None, stored.tags, stored.note, stored.group)
        if tagged != Labels():
            labels.write_labels(folder, tagged)
        for name, content in checkpoint_files.items():
            path = folder / "checkpoints" / name / "checkpoint.safetensors"
            path.parent.mkdir(parents=True)
            write_bytes(path, content, lasting=True)
        _write_events(archive, folder, status)
        say(0.6, N_("Checking the snapshots"))
        _write_snapshots(archive, folder)
        _check_snapshots(Run(folder))

    run = store.bring(
        experiment,
        status,
        fill,
        name=stored.name,
        threads=min(stored.threads, usable_cores()),
        preset=stored.preset,
        owner=owner,
        owner_name=owner_name,
    )
    return run, prepared


def _object(archive: Archive, name: str, *, most: int = _MAX_TEXT) -> dict[str, Any]:
    try:
        values = json_of(archive.read(name, most=most))
    except Refused:
        raise
    except ValueError:
        raise Refused("{name} is not JSON.", name=name) from None
    if not isinstance(values, dict):
        raise Refused("{name} is not a JSON object.", name=name)
    return values


def _facts(archive: Archive) -> dict[str, Any]:
    """Return run.json. Raises Refused where there is none, and where a newer app wrote it."""
    if CONFIG in archive and layout.EXPERIMENT not in archive:
        raise Refused(
            "This zip is a Hugging Face folder. Unpack and open it, or: python -m tfm_core open ZIP"
        )
    for name in (layout.EXPERIMENT, layout.FACTS):
        if name not in archive:
            raise Refused(
                "This zip has no {name}, so it is not a run. Make one with “Take it with you” or "
                "python -m tfm_core export ID.",
                name=name,
            )
    facts = _object(archive, layout.FACTS)
    form = facts.get("format")
    if not is_whole(form, 1, 10**6):
        raise Refused("run.json has no format number.")
    if form > layout.FORMAT:
        raise Refused(
            Paragraph("export/newer-app", version=_version(facts) or "?", own=tfm_core.__version__)
        )
    return facts


def _version(facts: Mapping[str, Any]) -> str | None:
    versions = facts.get("versions")
    version = versions.get("tfm_core") if isinstance(versions, dict) else None
    return version if is_line(version, 40) else None


def _experiment(archive: Archive, facts: Mapping[str, Any]) -> Experiment:
    try:
        return from_json(archive.read(layout.EXPERIMENT, most=_MAX_TEXT))
    except ConfigError as error:
        version = _version(facts)
        if version is not None and _is_newer(version):
            raise Refused(
                Paragraph(
                    "export/newer-settings",
                    version=version,
                    own=tfm_core.__version__,
                    why=error.sentence,
                )
            ) from None
        raise Refused("experiment.json is not valid. {why}", why=error.sentence) from None


def _is_newer(version: str) -> bool:
    try:
        return Version(version) > Version(tfm_core.__version__)
    except InvalidVersion:
        return False


def _checked_facts(facts: Mapping[str, Any], experiment: Experiment) -> tuple[_Facts, Status]:
    """Return the checked values of run.json, and the status of the new run. Raises Refused."""
    try:
        stored = _STORED.read(facts)
        if experiment.training is not None:
            total = experiment.training.steps
        else:  # trained by a program that need not know where it ends
            total = max(stored.total_steps, stored.step)
        if stored.step > total:
            raise WrongValue(layout.FACTS, "step")
    except WrongValue as error:
        raise Refused("run.json has an invalid value of “{name}”.", name=error.name) from None
    state = _STATES.get(stored.state, "stopped")
    reason = stored.reason
    if state != stored.state:  # it trained, waited or was interrupted where it was taken
        reason = N_("Imported at step {step:,}.", step=stored.step)
    status = Status(
        state,
        step=stored.step,
        total_steps=total,
        epoch=stored.epoch,
        reason=reason,
        seconds=stored.seconds,
    )
    return stored, status


def _write_events(archive: Archive, folder: Path, status: Status) -> None:
    """Write the valid events, which make the curves.

    Raises Refused for events of steps that the run has not done, and for more than such a run has.
    """
    if layout.EVENTS not in archive:
        return
    path = folder / thinned.EVENTS
    write_bytes(path, archive.read(layout.EVENTS, most=_MAX_EVENTS))
    # a run that was taken while it trained may be further in its events than in run.json
    last = status.step if status.state == "finished" else status.total_steps
    most = _EVENTS_A_STEP * (status.step + 1) + _MAX_EXTRA_EVENTS
    lines, n_resumed = [], 0
    for records in EventReader(path).batches():
        n_resumed += sum(record["event"] == "resumed" for record in records)
        reached = max((record.get("step", 0) for record in records), default=0)
        if reached > last:
            raise Refused(
                "The events go up to step {reached:,}, but the run to {last:,}.",
                reached=reached,
                last=last,
            )
        lines += [json.dumps(record, separators=(",", ":")) for record in records]
        if len(lines) > most or n_resumed > _MAX_RESUMES:
            raise Refused(
                "There are more events than a run of {step:,} steps has.", step=status.step
            )
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode(), lasting=True)
    thinned.keep(folder)


def _write_snapshots(archive: Archive, folder: Path) -> None:
    """Write examples, snapshots and weights over training; ``_check_snapshots`` reads them."""
    for name in (layout.PROBE, layout.PICTURES):
        if name in archive:
            target = folder / name.removeprefix("run/")
            write_bytes(target, archive.read(name, most=_MAX_TEXT), lasting=True)
    if layout.BEST in archive:
        best = _object(archive, layout.BEST, most=_MAX_SMALL)
        loss, step = best.get("loss"), best.get("step")
        if is_number(loss, -1e30, 1e30) and is_whole(step, 0, MAX_STEP_NUMBER):
            write_json(folder / "best.json", {"loss": loss, "step": step}, lasting=True)
    for folder_name in (layout.SNAPSHOTS, layout.KEPT_WEIGHTS):
        names = [name for name in archive.names if name.startswith(folder_name)]
        for name in names:
            if not _SNAPSHOT_NAME.fullmatch(name.removeprefix(folder_name)):
                raise Refused("{name} does not belong to a run.", name=name)
            target = folder / name.removeprefix("run/")
            target.parent.mkdir(exist_ok=True)
            write_bytes(target, archive.read(name, most=MAX_UNPACKED), lasting=True)


def _check_snapshots(run: Run) -> None:
    """Read every example, snapshot and kept weight as the app will. Raises Refused."""
    files = {
        folder: sorted(path.name for path in (run.folder / folder).glob("*"))
        for folder in ("snapshots", snapshots.WEIGHTS)
    }
    try:
        if (run.folder / "probe.json").exists() and run.probe().images is None:
            (run.folder / "probe.safetensors").unlink(missing_ok=True)  # of no use, and not checked
        for name in files["snapshots"]:
            run.snapshot(int(name.partition(".")[0]))
        shapes = expected_shapes(run.experiment) if files[snapshots.WEIGHTS] else {}
        for name in files[snapshots.WEIGHTS]:
            stored = run.weights(int(name.partition(".")[0]))
            if {key: value.shape for key, value in stored.items()} != shapes:
                raise Refused("{name} belongs to another model.", name=name)
    except Refused:
        raise
    except StudentError as error:
        raise Refused("This zip is damaged: {why}", why=error.sentence) from None
    steps = {*run.snapshot_steps(), *run.weight_steps()}
    if steps and max(steps) > run.status.total_steps:
        raise Refused("This zip has a snapshot from after the end of training.")
