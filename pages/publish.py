"""A run as a folder for any web server: ``python -m pages.publish ID --to FOLDER``.

The folder is kept up to date until the run ends; see ``docs/watchers.md``. ``--recorded`` in the
place of an id writes a site of all recorded runs; see ``docs/deploy.md``. It is not on the engine's
command line because the pages need the app's scripts.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pages.ui.files.publication import Publication, recorded_runs, write_site
from tfm_core.hosting.published.folder import EVERY, PAGE, Folder
from tfm_core.runs.store import RunStore

FAILED = 1
WRONG_INPUT = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish a run until it ends; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pages.publish",
        description="write a run as static files that play in a browser, until the run ends",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "id", metavar="ID", nargs="?", help="the id of the run (see python -m tfm_core runs)"
    )
    which.add_argument("--recorded", action="store_true", help="all recorded runs, with a gallery")
    parser.add_argument("--to", metavar="FOLDER", required=True, help="where to write them")
    parser.add_argument("--once", action="store_true", help="write the run as it is now, then exit")
    options = parser.parse_args(arguments)
    logging.getLogger("streamlit").setLevel(logging.ERROR)  # warns that there is no session
    folder = Path(options.to)
    try:
        if options.recorded:
            problems = write_site(folder, recorded_runs())
            print(folder / PAGE, flush=True)
            print(*problems, sep="\n", end="\n" * bool(problems), file=sys.stderr)
            return FAILED if problems else 0
        store = RunStore()
        publication = Publication(store.get(options.id), Folder(folder))
        goes_on = publication.update()
        print(folder / PAGE, flush=True)
        while goes_on and not options.once:
            time.sleep(EVERY)
            publication.run = store.get(options.id)  # it may have another name by now
            goes_on = publication.update()
    except KeyboardInterrupt:
        return INTERRUPTED
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return WRONG_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
