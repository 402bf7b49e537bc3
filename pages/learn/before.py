"""Before the Transformer: attention between recurrent networks, and what changed in 2017."""

from __future__ import annotations

from pages.ui import before_contest, before_history, before_times, linked, show
from pages.ui.words import _

VIEWS = {
    "contest": (_("Side by side"), before_contest.view),
    "length": (_("Time against length"), before_times.view),
    "history": (_("2014 to 2017"), before_history.view),
}


def page() -> None:
    """Show one side of it at a time; a link holds which."""
    show.header("before")
    picked = linked.choice(
        _("View"),
        {name: label for name, (label, _view) in VIEWS.items()},
        key="before-view",
        query="view",
        old="before-view",
        is_labelled=False,
    )
    VIEWS[picked][1]()


page()
