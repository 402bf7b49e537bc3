"""The recorded runs as a site of files: a gallery, a page a run, and one for what is not here.

It is made without PyTorch, and any web server or bucket hands it out; see ``docs/deploy.md``.
"""

from __future__ import annotations

from pathlib import Path

from pages.components import gallery, live
from pages.components.gallery import Card
from pages.i18n import _
from pages.ui import run_words, runs_access, show, sparkline
from pages.ui.publication import Publication
from tfm_core.publish.folder import PAGE, Folder
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

FIRST = "recorded-korean"
"""The run on stage."""
NOWHERE = "404.html"
"""The page of an address that leads nowhere, as many web servers call it."""


def recorded() -> list[Run]:
    """Return the runs that come with the app, the one on stage first."""
    runs = [run for run in RunStore().list() if run.meta.recorded]
    return sorted(runs, key=lambda run: run.id != FIRST)


def write(folder: Path, runs: list[Run]) -> None:
    """Write the whole site. Raises OSError, and ValueError where a run cannot be read."""
    write_gallery(folder, runs)
    for run in runs:
        write_run(folder, run)


def write_gallery(folder: Path, runs: list[Run]) -> None:
    """Write all but the runs: the gallery, the page for what is not here, scripts and styles."""
    files = Folder(folder)
    for kind in ("gallery", "live"):
        for name, content in live.static(kind).contents.items():
            files.put(name, content)
    files.put(PAGE, gallery.page([_card(run) for run in runs]))
    files.put(NOWHERE, gallery.nowhere([run.id for run in runs]))


def write_run(folder: Path, run: Run) -> None:
    """Write the page of a run, in a folder of its id."""
    Publication(run, Folder(folder / run.id), is_recorded=True).update()


def _card(run: Run) -> Card:
    n_parameters = runs_access.curves(run).started["n_parameters"]
    facts = [
        _("{n} parameters", n=show.count(n_parameters)),
        run_words.progress(run.status),
        _("trained {time}", time=show.duration(run.status.seconds)),
    ]
    return Card(
        name=run.id,
        title=run.meta.name,
        learns=run_words.learns(run),
        reached=run_words.result(run),
        facts=facts,
        curve=sparkline.svg(run),
        curve_name=_(sparkline.NAME),
    )
