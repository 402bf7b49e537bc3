"""The gallery of recorded runs: a page that plays one on stage and shows the others as cards.

Each card leads to the page of its run (``live``). Beside it there is a page for all addresses that
lead nowhere. Both say what is not done where they stand; without scripts the cards are links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pages.components.live import head, static
from pages.i18n import _

START = "pip install -r requirements.txt && streamlit run app.py"


@dataclass(frozen=True, slots=True)
class Card:
    """What is said of a run.

    name: of its folder. facts: short ones. curve: a picture as SVG; curve_name: what it shows.
    """

    name: str
    title: str
    learns: str
    reached: str
    facts: Sequence[str]
    curve: str
    curve_name: str


def page(cards: Sequence[Card]) -> bytes:
    """Return the gallery, UTF-8; the run of the first card is on stage."""
    title, on_stage = _("Watch a Transformer learn"), cards[0]
    unknown = _("The link asks for a run that is not here: here are recorded ones alone.")
    about = _(
        "{n} trainings of small, real models, recorded step by step. Press one to go through it.",
        n=len(cards),
    )
    lines = [
        *head(title, static("gallery")),
        f'<meta name="description" content="{escape(about)}"></head><body class="gallery">',
        f'<header class="top"><div><h1>{escape(title)}</h1><p class="about">{escape(about)}</p>',
        f'</div><a href="#what">{escape(_("What is not done here"))}</a>',
        f'<button type="button" class="small" id="theme">{escape(_("Light or dark"))}</button>',
        f'</header><p class="said" id="unknown" role="status" hidden>{escape(unknown)}</p>',
        f'<p id="problem" hidden>{escape(_problem())}</p>',
        f"<noscript><p>{escape(_('The trainings play where scripts may run.'))}</p></noscript>",
        f'<main><section class="first"><h2><a href="{on_stage.name}/">{escape(on_stage.title)}</a>',
        f'<span class="about">{escape(on_stage.learns)}</span></h2>',
        f'<div id="hero" data-at="{on_stage.name}/"><div class="stage"></div></div></section>',
        f'<section id="all"><h2>{escape(_("All recorded trainings"))}</h2><div class="cards">',
        *(_card(card) for card in cards),
        f"</div></section>{_what()}</main>",
        f'<a id="home" hidden href="./" data-runs="{" ".join(card.name for card in cards)}"></a>',
        "</body></html>",
    ]
    return "\n".join(lines).encode()


def nowhere(names: Sequence[str], root: str = "./") -> bytes:
    """Return the page of an address that leads nowhere, UTF-8.

    names: of the runs that there are. root: the address of the gallery, with a slash at its end.
    """
    title = _("This is not here")
    lines = [
        *head(title, static("gallery"), root),
        '<meta name="robots" content="noindex"></head><body class="gallery">',
        f'<header class="top"><div><h1>{escape(title)}</h1></div></header>',
        '<main><p class="said">',
        escape(
            _(
                "Only recorded trainings are shown here. The page or run that the link asks for "
                "belongs to the whole app, which is not running at this address."
            )
        ),
        f'</p><p><a id="home" class="on" href="{escape(root)}" data-runs="{" ".join(names)}">'
        f"{escape(_('See the recorded trainings'))}</a></p>{_what()}</main></body></html>",
    ]
    return "\n".join(lines).encode()


def _problem() -> str:
    return _("The trainings cannot be played now. Reload the page to try again.")


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


def _what() -> str:
    """Return what is done here and what is not, as HTML."""
    done = _(
        "Every curve, answer and attention map here is a recording: PyTorch computed it while the "
        "model learned. Here it is only played."
    )
    not_done = _(
        "Nothing is trained here and no model answers, so there is nothing to set, to type or to "
        "draw. The whole app does that on your own machine, with Python 3.11 or newer:"
    )
    return (
        f'<section id="what"><h2>{escape(_("What is not done here"))}</h2>'
        f"<p>{escape(done)}</p><p>{escape(not_done)}</p><pre><code>{escape(START)}</code></pre>"
        "</section>"
    )
