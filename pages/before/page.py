"""Before the Transformer: attention between recurrent networks, and what changed in 2017."""

from __future__ import annotations

from pages.before import contest, history, times
from pages.before.link import VIEW
from pages.i18n import _
from pages.ui import show, view_link

VIEWS = {"contest": contest.view, "length": times.view, "history": history.view}


def page() -> None:
    show.header("before")
    VIEWS[view_link.choice(_("View"), VIEW, is_labelled=False)]()


page()
