"""The page of a published run, and the gallery of recorded runs, as static HTML.

They play the scripts of the app's stage and read the runs from files beside them. Their policy
forbids other hosts and every script but their own.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape

from pages.components.files import bundled, joined
from pages.components.film import colours
from pages.i18n import _, language
from tfm_core.hosting.published.folder import tag

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
)
"""What a page may do."""

STYLES = {
    "live": (
        "focus.css",
        "packed.css",
        "stage.css",
        "spoken.css",
        "data_table.css",
        "film.css",
        "live.css",
    ),
    "gallery": (
        "focus.css",
        "packed.css",
        "stage.css",
        "data_table.css",
        "film.css",
        "gallery.css",
    ),
}
"""Kinds of pages, each with a script of its name."""


@dataclass(frozen=True, slots=True)
class Static:
    """The files that every page of a kind has. version: changes when one of them does."""

    version: str
    script: str
    style: str
    contents: dict[str, bytes]


@cache
def static(kind: str) -> Static:
    """Return the script and the style sheet of a kind of page, plain and gzipped.

    kind: of page, ``live`` or ``gallery``.
    """
    script = bundled(f"{kind}.js").encode()
    style = "\n".join([colours(), joined(*STYLES[kind])]).encode()
    names = f"{kind}-{tag(script)}.js", f"{kind}-{tag(style)}.css"
    contents = dict(zip(names, (script, style), strict=True))
    for name in names:
        contents[f"{name}.gz"] = gzip.compress(contents[name], 9, mtime=0)
    return Static(tag(script, style), *names, contents)


def _head(title: str, files: Static, root: str = "", marks: str = "") -> list[str]:
    """Return the head of a page.

    root: what stands before the names of its files. marks: attributes of the whole page.
    """
    return [
        f'<!doctype html><html lang="{language()}"{marks}><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">',
        f'<meta name="page" content="{files.version}"><title>{escape(title)}</title>',
        f'<link rel="stylesheet" href="{root}{files.style}">',
        f'<script type="module" src="{root}{files.script}"></script>',
    ]


def run_page(title: str, *, is_recorded: bool = False) -> bytes:
    """Return the HTML of a run's page. title: of the run, for link previews.

    is_recorded: one of a gallery, which plays automatically and never grows; its shared files are
    one folder up.
    """
    unreachable = _("No connection to the training. Retrying …")
    gallery = f'<a href="../">{escape(_("All recorded trainings"))}</a>' if is_recorded else ""
    lines = [
        *_head(title, static("live"), *(("../", " data-recorded") if is_recorded else ())),
        "</head><body>" if is_recorded else '<meta name="robots" content="noindex"></head><body>',
        f'<header class="top"><div><h1 id="title">{escape(title)}</h1>',
        '<p class="about" id="about"></p></div><span id="state" role="status"></span>',
        f'{gallery}<button type="button" class="small" id="theme">{escape(_("Switch theme"))}',
        '</button></header><p id="said" role="status"></p>',
        f'<p id="problem" hidden>{escape(unreachable)}</p>',
        f"<noscript><p>{escape(_('Turn on JavaScript to play the training.'))}</p></noscript>",
        '<main><div id="stage"><div class="stage"></div></div>',
        '<section id="happened" hidden><h2 id="happened-title"></h2>',
        '<ul class="happened" id="moments"></ul></section>',
        '<section id="settings" hidden><h2 id="settings-title"></h2>',
        '<div class="tables" id="tables"></div></section></main></body></html>',
    ]
    return "\n".join(lines).encode()


def words() -> dict[str, str]:
    return {
        "theme": _("Switch theme"),
        "happened": _("What happened"),
        "settings": _("Settings and versions"),
        "step": _("Step {step}"),
        "silent": _(
            "Nothing new for {time}: the training or its server may have stopped. Retrying …"
        ),
        "seconds": _("{n} seconds"),
        "minutes": _("{n} minutes"),
        "unreachable": _("No connection to the server. Retrying …"),
        "gone": _("No longer published here; showing the last data."),
    }


START = "pip install -r requirements.txt && streamlit run app.py"


@dataclass(frozen=True, slots=True)
class Card:
    """A run in the gallery.

    name: of its folder. facts: short ones. curve: a picture as SVG; curve_name: what it shows.
    """

    name: str
    title: str
    learns: str
    reached: str
    facts: Sequence[str]
    curve: str
    curve_name: str


def gallery_page(cards: Sequence[Card]) -> bytes:
    """Return the gallery; the run of the first card is on stage."""
    title, on_stage = _("Watch a Transformer learn"), cards[0]
    unknown = _("The run of this link is not here.")
    about = _("{n} trainings of small, real models, recorded step by step.", n=len(cards))
    lines = [
        *_head(title, static("gallery")),
        f'<meta name="description" content="{escape(about)}"></head><body class="gallery">',
        f'<header class="top"><div><h1>{escape(title)}</h1><p class="about">{escape(about)}</p>',
        f'</div><a href="#what">{escape(_("About this site"))}</a>',
        f'<button type="button" class="small" id="theme">{escape(_("Switch theme"))}</button>',
        f'</header><p class="said" id="unknown" role="status" hidden>{escape(unknown)}</p>',
        f'<p id="problem" hidden>{escape(_problem())}</p>',
        f"<noscript><p>{escape(_('Turn on JavaScript to play the trainings.'))}</p></noscript>",
        f'<main><section class="first"><h2><a href="{on_stage.name}/">{escape(on_stage.title)}</a>',
        f'<span class="about">{escape(on_stage.learns)}</span></h2>',
        f'<div id="hero" data-at="{on_stage.name}/"><div class="stage"></div></div></section>',
        f'<section id="all"><h2>{escape(_("All recorded trainings"))}</h2><div class="cards">',
        *(_card(card) for card in cards),
        f"</div></section>{_about()}</main>",
        f'<a id="home" hidden href="./" data-runs="{" ".join(card.name for card in cards)}"></a>',
        "</body></html>",
    ]
    return "\n".join(lines).encode()


def missing_page(names: Sequence[str], root: str = "./") -> bytes:
    """Return the page of an address that leads nowhere.

    names: of the runs that there are. root: the address of the gallery, with a slash at its end.
    """
    title = _("Page not found")
    lines = [
        *_head(title, static("gallery"), root),
        '<meta name="robots" content="noindex"></head><body class="gallery">',
        f'<header class="top"><div><h1>{escape(title)}</h1></div></header>',
        '<main><p class="said">',
        escape(_("Only recorded trainings are shown here. This link belongs to the whole app.")),
        f'</p><p><a id="home" class="on" href="{escape(root)}" data-runs="{" ".join(names)}">'
        f"{escape(_('See the recorded trainings'))}</a></p>{_about()}</main></body></html>",
    ]
    return "\n".join(lines).encode()


def _problem() -> str:
    return _("The trainings did not load. Reload the page.")


def _card(card: Card) -> str:
    facts = " · ".join(card.facts)
    return (
        f'<article class="card"><div class="film" data-at="{card.name}/" inert>'
        '<div class="stage"></div></div>'
        f'<h3><a href="{card.name}/">{escape(card.title)}</a></h3>'
        f'<p class="about">{escape(card.learns)}</p>'
        f'<p class="reached">{escape(card.reached)}</p><div class="below">'
        f'<span class="about">{escape(facts)}</span>'
        f'<span role="img" aria-label="{escape(card.curve_name)}">{card.curve}</span>'
        "</div></article>"
    )


def _about() -> str:
    done = _("Curves, answers and maps were recorded while PyTorch trained the models.")
    not_done = _("Nothing is trained here. Run the whole app yourself, with Python 3.11 or newer:")
    return (
        f'<section id="what"><h2>{escape(_("About this site"))}</h2>'
        f"<p>{escape(done)}</p><p>{escape(not_done)}</p><pre><code>{escape(START)}</code></pre>"
        "</section>"
    )
