"""From the arguments of a command line to its exit code."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence

from tfm_core.cli.common import FAILED, WRONG_INPUT
from tfm_core.cli.lists import examine_all
from tfm_core.cli.options import parser
from tfm_core.cli.training import TRAINING, n_processes, together
from tfm_core.runs import settings
from tfm_core.runs.disk.failures import refusal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: threads that don't spin
    if isinstance(sys.stdout, io.TextIOWrapper):  # a pipe of Windows knows few characters
        sys.stdout.reconfigure(errors="replace")
    options = parser().parse_args(arguments)
    if not logging.root.handlers:  # what goes wrong is one sentence, without its traceback
        logging.getLogger("tfm_core").addHandler(logging.NullHandler())
    try:
        if options.command is not examine_all:
            settings.checked()  # a bad one is said before anything begins
        if options.command in TRAINING and n_processes() > 1:
            return together(options)
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
