"""A button that puts a link on the clipboard, and the other links behind a smaller one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from pages.components.files import bundled, joined
from pages.i18n import _

_component = st.components.v2.component(
    "copy_link",
    html='<div class="copy-link"></div>\n',
    css=joined("copy_link.css"),
    js=bundled("copy_link.js"),
)


@dataclass(frozen=True, slots=True)
class Link:
    """An address, what it is a link to, and what it opens in a sentence."""

    to: str
    opens: str
    href: str


def copy_link(links: Sequence[Link], *, note: str = "", key: str) -> None:
    """Show the button, which copies the first of some links; note: a sentence below all of them."""
    _component(
        data={
            "links": [asdict(link) for link in links],
            "note": note,
            "words": {
                "copy": _("Copy link"),
                "copied": _("Copied"),
                "to": _("Copy link to {what}"),
                "others": _("All links"),
                "refused": _("The browser does not let the page copy. Here is the address:"),
            },
        },
        key=key,
        width="content",
    )
