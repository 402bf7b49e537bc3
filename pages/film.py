"""A run as one page, without a browser: ``python -m pages.film ID``; see ``pages.ui.files.film``.

It is not on the engine's command line because the page needs the app's scripts.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from pages.ui.files import film
from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.runs.store import RunStore

WRONG_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page of a run; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pages.film", description="write a run as one page that plays offline"
    )
    parser.add_argument("id", metavar="ID", help="the id of the run (see python -m tfm_core runs)")
    parser.add_argument(
        "--model", action="store_true", help="include the model, so that the page can run it"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="the output file; by default named after the run"
    )
    options = parser.parse_args(arguments)
    logging.getLogger("streamlit").setLevel(logging.ERROR)  # warns that there is no session
    try:
        run = RunStore().get(options.id)
        path = Path(options.out or film.file_name(run))
        if path.is_dir():
            path /= film.file_name(run)
        write_bytes(path, film.film(run, with_model=options.model))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return WRONG_INPUT
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
