"""The gallery of recorded runs, and the page of an address that leads nowhere.

The gallery plays the runs on their own pages (``film.py``), which it fetches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pages.components.files import bundled
from pages.components.html_page import html_page
from pages.i18n import _

_STYLES = ("focus.css", "packed.css", "stage.css", "data_table.css", "film.css", "gallery.css")
_ICON = '<link rel="icon" href="data:,">'

START = "pip install -r requirements.txt -c constraints.txt && streamlit run app.py"


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
    body = [
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
        escape(_("Only recorded trainings are shown here. This link belongs to the whole app.")),
        f'</p><p><a id="home" class="on" href="{escape(root)}" data-runs="{" ".join(names)}">'
        f"{escape(_('See the recorded trainings'))}</a></p>{_about()}</main>",
    ]
    return _page(title, body, '<meta name="robots" content="noindex">')


def _page(title: str, body: Sequence[str], meta: str) -> bytes:
    return html_page(
        title,
        body,
        styles=_STYLES,
        scripts=[bundled("gallery.js")],
        policy={"connect-src": "'self'"},
        head=[_ICON, meta],
        body_class="gallery",
    )


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
