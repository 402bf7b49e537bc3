"""From the arguments of a command line to its exit code: the commands and their options."""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
from collections.abc import Callable, Sequence

from tfm_core import settings
from tfm_core.cli import lessons, training
from tfm_core.cli.commands import (
    FAILED,
    INTERRUPTED,
    WRONG_INPUT,
    examine_all,
    export_run,
    import_run,
    list_devices,
    list_presets,
    list_runs,
    open_folder,
)
from tfm_core.cli.words import _
from tfm_core.export.exports import EXPORTS
from tfm_core.runs.disk.failures import refusal
from tfm_core.sentences import N_


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: threads that don't spin
    if isinstance(sys.stdout, io.TextIOWrapper):  # a pipe of Windows knows few characters
        sys.stdout.reconfigure(errors="replace")
    options = parser().parse_args(arguments)
    examines = options.command is examine_all  # which reports bad settings itself
    return exit_code(lambda: int(options.command(options)), checks_settings=not examines)


def exit_code(command: Callable[[], int], *, checks_settings: bool = True) -> int:
    """Run a command; return its exit code. What goes wrong is a sentence on standard error."""
    if not logging.root.handlers:  # errors are one sentence, without a traceback
        logging.getLogger("tfm_core").addHandler(logging.NullHandler())
    try:
        if checks_settings:
            settings.checked()  # before anything starts
            for sentence in settings.unknown():
                print(_(sentence), file=sys.stderr)
        return command()
    except ValueError as error:
        print(_(error), file=sys.stderr)
        return WRONG_INPUT
    except ModuleNotFoundError as error:
        words = N_("{name} is missing: pip install -r requirements.txt", name=error.name)
        print(_(words), file=sys.stderr)
        return WRONG_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a list has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # the disk cannot even store why the run ended
        print(_(refusal(error)), file=sys.stderr)
        return FAILED


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    whole = argparse.ArgumentParser(
        prog="python -m tfm_core",
        description=_("Train without the app, in the same run folders that the app shows."),
    )
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    train = commands.add_parser("train", help=_("train a preset, optionally with changes"))
    train.add_argument("--preset", metavar="NAME", help=_("the preset (see presets)"))
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help=_("change a setting, such as model.d_model=128 or task.name=copy; repeatable"),
    )
    train.add_argument("--seed", type=int, metavar="N", help=_("random seed"))
    train.add_argument("--device", default="cpu", help=_("cpu, cuda:0, mps (see devices)"))
    train.add_argument(
        "--threads",
        default="1",
        metavar="N",
        help=_("CPU threads; auto measures the fastest number"),
    )
    train.add_argument("--name", help=_("name of the run"))
    train.set_defaults(command=training.train)
    _add_output(train)

    resume = commands.add_parser("resume", help=_("resume a run that ended early"))
    resume.add_argument("id", metavar="ID", help=_("the id of the run (see runs)"))
    resume.add_argument("--device", help=_("continue on another device: cpu, cuda:0, mps"))
    resume.set_defaults(command=training.resume)
    _add_output(resume)

    further = commands.add_parser("further", help=_("train a copy of a finished run for longer"))
    further.add_argument("id", metavar="ID", help=_("the id of the run (see runs)"))
    further.add_argument(
        "--steps",
        type=int,
        metavar="N",
        required=True,
        help=_("total steps, including those already done"),
    )
    further.add_argument("--device", help=_("continue on another device: cpu, cuda:0, mps"))
    further.add_argument(
        "--keep-rate-low", action="store_true", help=_("a low constant learning rate, no schedule")
    )
    further.set_defaults(command=training.further)
    _add_output(further)

    take = commands.add_parser("export", help=_("export a run as a zip that needs no app"))
    take.add_argument("id", metavar="ID", help=_("the id of the run (see runs)"))
    take.add_argument(
        "--out", metavar="FILE", help=_("output file or folder (default: this folder)")
    )
    kinds = take.add_mutually_exclusive_group()
    for export in EXPORTS:
        kinds.add_argument(
            f"--{export.name}",
            action="store_const",
            const=export,
            dest="export",
            help=_(export.help_there),
        )
    kinds.add_argument("--data", action="store_true", help=_("include your training data"))
    take.set_defaults(command=export_run)

    bring = commands.add_parser("import", help=_("import an exported zip as a run"))
    bring.add_argument("file", metavar="FILE", help=_("the zip"))
    bring.set_defaults(command=import_run)

    opened = commands.add_parser(
        "open", help=_("open a Hugging Face folder or model, or a look, as a run")
    )
    opened.add_argument(
        "folder",
        metavar="PATH",
        help=_("the folder or its zip, an id of the Hub, or the file that look.save wrote"),
    )
    opened.add_argument("--name", metavar="NAME", help=_("name of the run"))
    opened.add_argument("--quiet", action="store_true", help=_("print only the id"))
    opened.set_defaults(command=open_folder)

    for name, words, command in (
        ("runs", N_("list the runs, newest first"), list_runs),
        ("presets", N_("list the presets"), list_presets),
        ("devices", N_("list the devices of this machine"), list_devices),
    ):
        lister = commands.add_parser(name, help=_(words))
        lister.add_argument("--json", action="store_true", help=_("print JSON"))
        lister.set_defaults(command=command)

    lessons.add_parser(commands)

    doctor = commands.add_parser("doctor", help=_("check folder, disk, packages and runs"))
    doctor.add_argument("--json", action="store_true", help=_("print JSON"))
    doctor.set_defaults(command=examine_all)
    return whole


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help=_("no progress bar and no summary"))
    parser.add_argument(
        "--json", action="store_true", help=_("print the final figures as JSON, on the last line")
    )
