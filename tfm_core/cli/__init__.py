"""The command line: train without the app, in the same run folders that the app shows.

Wrong input is one sentence on standard error and exit code 2; a run that failed is exit code 1;
Ctrl-C keeps a checkpoint and is exit code 130.
"""

from tfm_core.cli.commands import FAILED, WRONG_INPUT
from tfm_core.cli.entry import main

__all__ = ["FAILED", "WRONG_INPUT", "main"]
