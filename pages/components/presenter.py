"""Presenter mode: what fills the screen, and what the arrow keys press in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from pages.components.component import component, plain
from pages.i18n import N_, _

_presenter = component("presenter", html="")


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure that can fill the screen.

    css: a selector of its root, inside its component. title: its name, "" to take what a screen
    reader calls it. narrowest: pixels of its own below which it folds up; its type grows no further
    then. canvas: pixels of the smallest type on its canvases. What leads to its next beat is one
    of: buttons, the one back and the one on; choices, a selector of what is chosen one after the
    other; keys, back and on, for the element of the selector ``hears``. Without one, the next beat
    is the next step of the page, and behind the last step the next figure.
    """

    css: str
    title: str = ""
    narrowest: int = 480
    canvas: int = 12
    buttons: tuple[str, str] | None = None
    choices: str = ""
    hears: str = ""
    keys: tuple[str, str] | None = None


KINDS = (
    FigureKind(".stage", N_("The training"), narrowest=730, buttons=(".back", ".next")),
    FigureKind(".heads", N_("All heads"), choices=".grid button"),
    FigureKind(
        ".picture",
        N_("The model at work"),
        narrowest=650,
        canvas=11,
        hears="canvas.model",
        keys=("Escape", "Enter"),
    ),
    FigureKind(".lines", N_("One head")),
    *map(FigureKind, (".live-figure", ".sheet", ".lab", ".reader", ".board", ".desk")),
)
"""Every figure of a page that is one of these can be presented, in the order of the page."""
STEPS = (".st-key-walk-left button", ".st-key-walk-right button")
"""Selectors of the buttons that go one step of a page back and on."""


def presenter(page: str, *, n_links: int, key: str) -> None:
    """Listen for the key P.

    page: its name. n_links: how often a link has asked for presenter mode in this session.
    """
    words = {
        "back": _("Previous beat"),
        "next": _("Next beat"),
        "figure": _("Next figure"),
        "leave": _("Leave presenter mode"),
        "keys": _("← → beats, ↑ ↓ figures, Esc leaves"),
    }
    _presenter(
        plain(
            {
                "page": page,
                "start": n_links,
                "kinds": [{**asdict(kind), "title": _(kind.title)} for kind in KINDS],
                "steps": STEPS,
                "words": words,
            }
        ),
        key=key,
    )
