"""Reading: encoder-only models on sentences, gaps and patches."""

from __future__ import annotations

from pages.encoders import blanks, patches, sentiment
from pages.encoders.run import VIEW
from pages.i18n import _
from pages.ui import show
from pages.ui.address import view_link

VIEWS = {"sentiment": sentiment.view, "blanks": blanks.view, "patches": patches.view}


def page() -> None:
    show.header("encoders")
    VIEWS[view_link.choice(_("View"), VIEW, is_labelled=False)]()


page()
