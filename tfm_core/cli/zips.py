"""A run taken along as one file, and brought back."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tfm_core.cli.common import compare
from tfm_core.runs import Run, RunStore
from tfm_core.sentences import StudentError


def export_run(options: argparse.Namespace) -> int:
    """Write a run as a file; what lies there already is replaced once the new one is whole."""
    from tfm_core.export import bundle, tensorboard
    from tfm_core.runs.atomic import write_bytes

    compare()
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
