"""Commands that train nothing: lists, the doctor, export and import."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import unicodedata
import zipfile
from pathlib import Path

from tfm_core import settings
from tfm_core.cli.words import STATES, _
from tfm_core.runs import RunStore
from tfm_core.sentences import N_, Sentence, StudentError

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130


def _spoken(name: object) -> str:
    """Return the name of a run; that of a recorded one is a sentence of the app."""
    return _(name) if isinstance(name, Sentence) else str(name)


def _padded(text: str, width: int) -> str:
    """Return a text with spaces to its right; Hangul is two columns wide in a terminal."""
    taken = sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
    return text + " " * (width - taken)


def list_runs(options: argparse.Namespace) -> int:
    """Print the runs, newest first."""
    rows, store = [], RunStore()
    with contextlib.suppress(FileNotFoundError):  # no run was made yet
        os.listdir(store.root)  # an unreadable folder is not one without runs
    for run in store.list():
        status = run.status
        rows.append(
            {
                "id": run.id,
                "state": "damaged" if run.problem else status.state,
                "step": status.step,
                "total_steps": 0 if status.state == "opened" else status.total_steps,
                "name": run.meta.name,
                "created": run.meta.created,
                "problem": run.damage,
            }
        )
    if options.json:
        print(json.dumps(rows))
        return 0
    for row in rows:
        progress = f"{row['step']}/{row['total_steps']}" if row["total_steps"] else "–"
        state = _padded(_(STATES[str(row["state"])]), 12)
        print(f"{row['id']:<18} {state} {progress:>13}  {_spoken(row['name'])}")
        if isinstance(problem := row["problem"], str):
            print(f"{'':<18} {_(problem)}")
    if not rows:
        print(_("There are no runs yet: python -m tfm_core train --preset copy"))
    return 0


def list_presets(options: argparse.Namespace) -> int:
    """Print the presets."""
    from tfm_core.choices.presets import PRESETS

    if options.json:
        rows = [
            {"name": preset.name, "label": preset.label, "seconds": preset.seconds}
            for preset in PRESETS.values()
        ]
        print(json.dumps(rows))
        return 0
    for name, preset in PRESETS.items():
        print(f"{name:<18} {preset.seconds:>6.0f} s  {_(preset.label)}")
    return 0


def list_devices(options: argparse.Namespace) -> int:
    """Print the devices of this machine, and why others are not there."""
    from dataclasses import asdict

    from tfm_core.training.devices import devices

    known = devices()
    if options.json:
        print(json.dumps([asdict(device) for device in known]))
        return 0
    for device in known:
        if device.available:
            free = _("{n:.1f} GiB free", n=(device.memory_free or 0) / 2**30)
            print(f"{device.name:<8} {device.label}, {free}")
        else:
            print(f"{device.name:<8} {_('not available: {why}', why=device.reason)}")
    return 0


def examine_all(options: argparse.Namespace) -> int:
    """Print what is wrong with folder, disk, packages and runs."""
    from dataclasses import asdict

    from tfm_core.doctor import examine

    found = []
    for finding in examine():
        found.append(finding)
        if not options.json:
            print(finding, flush=True)
    if options.json:
        print(json.dumps([asdict(finding) for finding in found]))
    return FAILED if any(finding.level == "problem" for finding in found) else 0


def export_run(options: argparse.Namespace) -> int:
    """Write a run as a file; what lies there already is replaced once the new one is whole."""
    from tfm_core.export import bundle, hugging_face
    from tfm_core.runs.disk.atomic import write_output

    run, chosen = RunStore().get(options.id), options.export
    name = bundle.file_name(run) if chosen is None else chosen.file_name(run)
    path = Path(options.out or name)
    if os.path.isdir(path):
        path /= name
    content = chosen.make(run) if chosen else bundle.bundle(run, with_set=options.data, say=_)
    write_output(path, content)
    if os.path.isfile(path) and not path.is_symlink():  # else it may be the output itself
        print(path)
    if (
        chosen is not None
        and chosen.name == "hugging-face"
        and (note := hugging_face.note(content))
    ):
        print(_(note), file=sys.stderr)
    return 0


def open_folder(options: argparse.Namespace) -> int:
    """Make a run of a Hugging Face folder or its zip, of a model on the Hub, or of a look."""
    from tfm_core.export.opening import open_run, size_of, unzipped
    from tfm_core.pretrained import hub

    path, name = Path(options.folder).expanduser(), options.name
    with contextlib.ExitStack() as stack:
        if zipfile.is_zipfile(path):
            name = name or path.stem.removesuffix("-hugging-face")
            path = stack.enter_context(unzipped(path))
        elif os.path.isfile(path):
            return _open_look(path, options)
        elif hub.is_id(options.folder):
            model = hub.find_model(options.folder, is_public=settings.read().public)
            if not options.quiet:
                print(_(model.size_message), file=sys.stderr)
            path, name = model.folder(), name or model.name.rpartition("/")[2]
        if not options.quiet:
            print(_(size_of(path)), file=sys.stderr)
        run = open_run(path, RunStore(), name=name)
    print(run.id)
    return 0


def _open_look(path: Path, options: argparse.Namespace) -> int:
    from tfm_core.looking.file import load
    from tfm_core.looking.opening import check_room, left_out, open_look
    from tfm_core.looking.seen import Seen

    look = load(path, Seen, check=check_room)
    if not options.quiet:
        print(look, file=sys.stderr)
    run = open_look(look, RunStore(), name=options.name)
    if not options.quiet and (rest := left_out(look)):
        words = N_("Not shown, because their shapes differ: {names}.", names=", ".join(rest))
        print(_(words), file=sys.stderr)
    print(run.id)
    return 0


def import_run(options: argparse.Namespace) -> int:
    """Make a run of a zip."""
    if not os.path.isfile(options.file):
        raise StudentError("“{path}” is not a file.", path=options.file)
    from tfm_core.export.importer import import_run  # with torch

    if not zipfile.is_zipfile(options.file):
        raise StudentError(
            "“{path}” is not a readable zip. "
            "For a folder or a look, use: python -m tfm_core open PATH",
            path=options.file,
        )
    with open(options.file, "rb") as file:
        run = import_run(file, RunStore())
    print(run.id)
    return 0
