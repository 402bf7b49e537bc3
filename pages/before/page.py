"""Before the Transformer: attention between recurrent networks, and what changed in 2017."""

from __future__ import annotations

from pages.before import contest, history, times
from pages.i18n import N_, _
from pages.ui import show, url_choice

VIEWS = {
    "contest": (N_("Side by side"), contest.view),
    "length": (N_("Time against length"), times.view),
    "history": (N_("2014 to 2017"), history.view),
}


def page() -> None:
    """Show one side of it at a time; a link holds which."""
    show.header("before")
    picked = url_choice.choice(
        _("View"),
        {name: label for name, (label, _view) in VIEWS.items()},
        key="before-view",
        query="view",
        old="before-view",
        is_labelled=False,
    )
    VIEWS[picked][1]()


page()
