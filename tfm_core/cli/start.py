"""``watch-a-transformer``: start the app, as ``streamlit run app.py`` does in a checkout."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tfm_core.cli.words import _

_SITE = Path(__file__).resolve().parents[2]


def main() -> int:
    """Start the app on this Python; the arguments are those of ``streamlit run``."""
    parser().parse_known_args()  # --help ends here
    installed, checkout = _SITE / "watch_a_transformer" / "app.py", _SITE / "app.py"
    app = installed if installed.is_file() else checkout
    command = [sys.executable, "-m", "streamlit", "run", str(app), *sys.argv[1:]]
    if os.name == "posix":
        os.execv(sys.executable, command)
    return subprocess.call(command)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, for its help alone."""
    return argparse.ArgumentParser(
        prog="watch-a-transformer",
        usage="watch-a-transformer [--server.port PORT] [OPTION ...]",
        description=_(
            "Start the app and print its address. The options are those of `streamlit run`; "
            "runs are kept in the folder TFM_RUNS_DIR (default: runs)."
        ),
        epilog=_("`python -m tfm_core --help` lists the commands that need no browser."),
    )
