"""A run taken along as one file, and brought back."""

from __future__ import annotations

import argparse
from pathlib import Path

from tfm_core.cli.common import compare
from tfm_core.runs import RunStore
from tfm_core.sentences import StudentError


def export_run(options: argparse.Namespace) -> int:
    """Write a run as a file; what lies there already is replaced once the new one is whole."""
    from tfm_core.export import bundle
    from tfm_core.runs.disk.atomic import write_bytes

    compare()
    run, chosen = RunStore().get(options.id), options.export
    name = bundle.file_name(run) if chosen is None else chosen.file_name(run)
    path = Path(options.out or name)
    if path.is_dir():
        path /= name
    write_bytes(path, chosen.make(run) if chosen else bundle.bundle(run, with_set=options.data))
    print(path)
    return 0


def import_run(options: argparse.Namespace) -> int:
    """Make a run of a zip."""
    from tfm_core.export.take_in import take_in

    path = Path(options.file)
    if not path.is_file():
        raise StudentError("There is no file {path}.", path=str(path))
    with path.open("rb") as file:
        run = take_in(file, RunStore())
    compare()
    print(run.id)
    return 0
