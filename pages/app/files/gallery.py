"""The site of recorded runs: a gallery, and a page for each run; see ``docs/deploy.md``.

The gallery plays the runs on their own pages (``film.py``), which it fetches.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from pages.app import show
from pages.app.files.film import film
from pages.app.runs import run_words, runs_access
from pages.components.files import bundled
from pages.components.html_page import html_page
from pages.i18n import _
from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

_STYLES = (
    "focus.css",
    "shared.css",
    "stage.css",
    "data_table.css",
    "film.css",
    "gallery.css",
)
START = "pip install -r requirements.txt -c constraints.txt && streamlit run app.py"
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
    write_bytes(folder / PAGE, gallery_page(runs))
    write_bytes(folder / NOWHERE, missing_page([run.id for run in runs]))


def write_run(folder: Path, run: Run) -> None:
    (folder / run.id).mkdir(parents=True, exist_ok=True)
    page = film(run, with_model=False, is_public=True, gallery="../")
    write_bytes(folder / run.id / PAGE, page)


def gallery_page(runs: Sequence[Run]) -> bytes:
    """Return the gallery; the first run is on stage."""
    title, on_stage = _("Watch a Transformer learn"), runs[0]
    name = run_words.name(on_stage)
    problem = _("The runs didn't load. Reload the page.")
    unknown = _("The run in this link is not here.")
    about = _("{n} runs of small, real models, recorded step by step.", n=len(runs))
    body = [
        f'<header class="top"><div><h1>{escape(title)}</h1><p class="about">{escape(about)}</p>',
        f'</div><a href="#what">{escape(_("About this site"))}</a>',
        f'<button type="button" class="small" id="theme">{escape(_("Switch theme"))}</button>',
        f'</header><p class="said" id="unknown" role="status" hidden>{escape(unknown)}</p>',
        f'<p id="problem" hidden>{escape(problem)}</p>',
        f"<noscript><p>{escape(_('Turn on JavaScript to play the runs.'))}</p></noscript>",
        f'<main><section class="first"><h2><a href="{on_stage.id}/">{escape(name)}</a>',
        f'<span class="about">{escape(run_words.learns(on_stage))}</span></h2>',
        f'<div id="hero" data-at="{on_stage.id}/"><div class="stage"></div></div></section>',
        f'<section id="all"><h2>{escape(_("All recorded runs"))}</h2><div class="cards">',
        *map(_card, runs),
        f"</div></section>{_about()}</main>",
        f'<a id="home" hidden href="./" data-runs="{" ".join(run.id for run in runs)}"></a>',
    ]
    return _page(title, body, f'<meta name="description" content="{escape(about)}">')


def missing_page(names: Sequence[str], root: str = "./") -> bytes:
    """Return the page of an address that leads nowhere.

    names: of the runs that there are. root: the address of the gallery, with a slash at its end.
    """
    title = _("Page not found")
    body = [
        f'<header class="top"><div><h1>{escape(title)}</h1></div></header>',
        '<main><p class="said">',
        escape(_("This link needs the whole app; this site only shows recorded runs.")),
        f'</p><p><a id="home" class="on" href="{escape(root)}" data-runs="{" ".join(names)}">'
        f"{escape(_('See the recorded runs'))}</a></p>{_about()}</main>",
    ]
    return _page(title, body, '<meta name="robots" content="noindex">')


def _page(title: str, body: Sequence[str], meta: str) -> bytes:
    return html_page(
        title,
        body,
        styles=_STYLES,
        scripts=[bundled("gallery.js")],
        policy={"connect-src": "'self'"},
        head=['<link rel="icon" href="data:,">', meta],
        body_class="gallery",
    )


def _card(run: Run) -> str:
    n_parameters = runs_access.curves(run).started.get("n_parameters", 0)
    facts = [
        _("{n} parameters", n=show.count(n_parameters)),
        run_words.progress(run_words.reached(run)),
        _("trained {time}", time=show.duration(run.status.seconds)),
    ]
    curve = run_words.sparkline_svg(run)
    return (
        f'<article class="card"><div class="film" data-at="{run.id}/" inert>'
        '<div class="stage"></div></div>'
        f'<h3><a href="{run.id}/">{escape(run_words.name(run))}</a></h3>'
        f'<p class="about">{escape(run_words.learns(run))}</p>'
        f'<p class="reached">{escape(run_words.result(run))}</p><div class="below">'
        f'<span class="about">{escape(" · ".join(facts))}</span>'
        f'<span role="img" aria-label="{escape(run_words.sparkline_name(run))}">{curve}</span>'
        "</div></article>"
    )


def _about() -> str:
    done = _("Curves, answers and maps were recorded while PyTorch trained the models.")
    not_done = _("To train, run the whole app with Python 3.11 or newer:")
    return (
        f'<section id="what"><h2>{escape(_("About this site"))}</h2>'
        f"<p>{escape(done)}</p><p>{escape(not_done)}</p><pre><code>{escape(START)}</code></pre>"
        "</section>"
    )
