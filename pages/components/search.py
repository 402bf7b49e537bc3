"""A field that finds pages and terms as one types, and leads to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pages.components.component import component, plain
from pages.i18n import _

_component = component("search", css=["search.css"])


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
        plain(
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
        on={"chosen": None},
        key=key,
        width=260,
    )
    chosen = result.chosen
    is_entry = isinstance(chosen, int | float) and chosen in range(len(entries))
    return int(chosen) if is_entry else None
