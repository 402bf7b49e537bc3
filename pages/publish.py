"""A run as one page, without a browser: ``python -m pages.publish ID``.

The page is written again until the run ends, and reloads itself until then. ``--recorded`` in the
place of an id writes a site of all recorded runs; see ``docs/deploy.md``. It is not on the engine's
command line because the pages need the app's scripts.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pages.app.runs import film
from tfm_core.cli.commands import FAILED
from tfm_core.cli.entry import exit_code
from tfm_core.cli.words import _
from tfm_core.runs.disk.atomic import write_output
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page of a run until the run ends; return the exit code."""
    options = parser().parse_args(arguments)
    logging.getLogger("streamlit").setLevel(logging.ERROR)  # warns that there is no session
    if options.recorded:
        return exit_code(lambda: _publish_recorded(Path(options.to or "site")))
    return exit_code(lambda: _publish(options.id, options.to, with_model=options.model))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    whole = argparse.ArgumentParser(
        prog="python -m pages.publish",
        description=_("Write a run as one page that plays in a browser."),
    )
    which = whole.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "id", metavar="ID", nargs="?", help=_("the id of the run (see python -m tfm_core runs)")
    )
    which.add_argument(
        "--recorded", action="store_true", help=_("all recorded runs, with a gallery")
    )
    whole.add_argument(
        "--to", metavar="PATH", help=_("output file or folder (default: named after the run)")
    )
    whole.add_argument(
        "--model", action="store_true", help=_("include the model, so the page can run it")
    )
    return whole


def _publish_recorded(folder: Path) -> int:
    try:
        problems = film.write_site(folder, film.recorded_runs())
    except OSError as error:
        raise StudentError(
            "Can't write {path}: {why}.", path=str(folder), why=error.strerror
        ) from None
    print(folder / film.INDEX_PAGE)
    print(*map(_, problems), sep="\n", end="\n" * bool(problems), file=sys.stderr)
    return FAILED if problems else 0


def _publish(run_id: str, to: str | None, *, with_model: bool) -> int:
    store = RunStore()
    run = store.get(run_id)
    path = Path(to or film.file_name(run))
    if os.path.isdir(path):
        path /= film.file_name(run)
    goes_on = _write(run, path, with_model=with_model)
    print(path, flush=True)
    while goes_on:
        time.sleep(film.RELOAD_SECONDS)
        goes_on = _write(store.get(run_id), path, with_model=with_model)
    return 0


def _write(run: Run, path: Path, *, with_model: bool) -> bool:
    """Write the page; return whether the run goes on."""
    goes_on = run.status.is_active  # before the page, which then shows the end
    write_output(path, film.film(run, with_model=with_model, is_public=True))
    return goes_on


if __name__ == "__main__":
    sys.exit(main())
