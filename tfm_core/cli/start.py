"""``watch-a-transformer``: start the app, as ``streamlit run app.py`` does in a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_SITE = Path(__file__).resolve().parents[2]


def main() -> int:
    """Start the app on this Python; the arguments are those of ``streamlit run``."""
    installed, checkout = _SITE / "watch_a_transformer" / "app.py", _SITE / "app.py"
    app = installed if installed.is_file() else checkout
    command = [sys.executable, "-m", "streamlit", "run", str(app), *sys.argv[1:]]
    if os.name == "posix":
        os.execv(sys.executable, command)
    return subprocess.call(command)
