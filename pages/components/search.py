"""A field that finds pages and terms as one types, and leads to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.components.files import bundled, joined
from pages.components.packing import plain
from pages.i18n import _

_component = st.components.v2.component(
    "search",
    html='<div class="search"></div>\n',
    css=joined("search.css"),
    js=bundled("search.js"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What can be found: its name and one line about it, where it leads, words that find it too."""

    name: str
    about: str
    href: str
    also: str = ""


def search(entries: Sequence[Entry], *, key: str) -> int | None:
    """Show the field; return the index of the entry that was chosen just now, or None."""
    result = _component(
        data=plain(
            {
                "entries": [
                    {
                        "name": entry.name,
                        "about": entry.about,
                        "href": entry.href,
                        "also": entry.also,
                    }
                    for entry in entries
                ],
                "words": {
                    "label": _("Search pages and terms"),
                    "hint": _("Press / to search from anywhere on the page."),
                    "found": _("{n} found"),
                    "none": _("Nothing found."),
                },
            }
        ),
        on_chosen_change=_nothing,
        key=key,
        width=260,
    )
    chosen = result.chosen
    is_entry = isinstance(chosen, int | float) and chosen in range(len(entries))
    return int(chosen) if is_entry else None


def _nothing() -> None:
    """Do nothing: a trigger needs a callback, and its value is enough."""
