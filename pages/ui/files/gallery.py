"""The site of recorded runs: a gallery, and a page for each run; see ``docs/deploy.md``."""

from __future__ import annotations

from pathlib import Path

from pages.components import gallery
from pages.i18n import _
from pages.ui import show
from pages.ui.files.film import film
from pages.ui.runs import run_words, runs_access
from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

PAGE = "index.html"
FIRST_RUN = "recorded-korean"
"""The run on stage."""
NOWHERE = "404.html"
"""The page of an address that leads nowhere, as many web servers call it."""


def recorded_runs() -> list[Run]:
    runs = [run for run in RunStore().list() if run.meta.recorded]
    return sorted(runs, key=lambda run: run.id != FIRST_RUN)


def write_site(folder: Path, runs: list[Run]) -> list[str]:
    """Write the site of the runs that can be read; return a sentence on each other one.

    Raises OSError.
    """
    written, problems = list[Run](), list[str]()
    for run in runs:
        try:
            write_run(folder, run)
            written.append(run)
        except StudentError as error:
            problems.append(f"{run.id}: {_(error)}")
    write_gallery(folder, written)
    return problems


def write_gallery(folder: Path, runs: list[Run]) -> None:
    """Write the gallery, without the damaged runs, and the page of missing addresses."""
    runs = [run for run in runs if run.problem is None]
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / PAGE, gallery.gallery_page([_card(run) for run in runs]))
    write_bytes(folder / NOWHERE, gallery.missing_page([run.id for run in runs]))


def write_run(folder: Path, run: Run) -> None:
    (folder / run.id).mkdir(parents=True, exist_ok=True)
    page = film(run, with_model=False, is_public=True, gallery="../")
    write_bytes(folder / run.id / PAGE, page)


def _card(run: Run) -> gallery.Card:
    n_parameters = runs_access.curves(run).started.get("n_parameters", 0)
    facts = [
        _("{n} parameters", n=show.count(n_parameters)),
        run_words.progress(run_words.reached(run)),
        _("trained {time}", time=show.duration(run.status.seconds)),
    ]
    return gallery.Card(
        name=run.id,
        title=run_words.name(run),
        learns=run_words.learns(run),
        reached=run_words.result(run),
        facts=facts,
        curve=run_words.sparkline_svg(run),
        curve_name=run_words.sparkline_name(run),
    )
