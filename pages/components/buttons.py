"""Buttons that Streamlit lacks: a counting one, links to copy, the search field, saving as PNG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import streamlit as st

from pages.components import addresses
from pages.components.component import component, is_index, is_name, is_whole, plain, sent
from pages.i18n import _

MAX_PRESSES = 50  # presses taken at once

_counted = component(
    "counted_button",
    css=["counted_button.css"],
    html='<button type="button" class="counted"></button>\n',
)


def counted_button(
    label: str, *, help: str, path: str, on_press: Callable[[int], None], key: str
) -> None:
    """Draw a button; ``on_press`` gets the number of new presses before the next rerun.

    path: its icon, the ``d`` of an SVG path in a square of 24.
    """

    def pressed(value: object) -> None:
        times = new_presses(value, st.session_state.get(f"{key}-had"))
        if times:
            st.session_state[f"{key}-had"] = value
            on_press(times)

    _counted(
        {"label": label, "help": help, "path": path},
        on={"pressed": pressed},
        width="content",
        key=key,
    )


def new_presses(sent: object, had: object) -> int:
    """Return the number of new presses. sent, had: a button's id and its count."""
    if not (isinstance(sent, list) and len(sent) == 2 and isinstance(sent[0], str)):
        return 0
    count = sent[1]
    if not is_whole(count):
        return 0
    is_same = isinstance(had, list) and had[:1] == sent[:1]
    before = had[1] if is_same and isinstance(had, list) else 0
    return max(0, min(MAX_PRESSES, count - before))


_links = component("copy_link", css=["copy_link.css"])


@dataclass(frozen=True, slots=True)
class Link:
    """An address, what it links to, and a sentence on what it opens.

    is_here: it is the browser's current address, also after a fragment changed that.
    """

    to: str
    opens: str
    href: str
    is_here: bool = False


def copy_link(links: Sequence[Link], *, note: str = "", key: str) -> None:
    """Draw links to copy, each with its code. note: a sentence below them."""
    asked = sent(key, "code")  # which link, and what it was then
    is_valid = isinstance(asked, list) and len(asked) == 2 and is_index(asked[:1], len(links))
    shown = links[asked[0]] if is_valid else None
    _links(
        plain(
            {
                "links": [
                    {**asdict(link), "local": addresses.local_note(link.href)} for link in links
                ],
                "note": note,
                "code": None if shown is None else {"asked": asked, "src": qr_code(shown.href)},
                "words": {
                    "copy": _("Copy link"),
                    "copied": _("Copied"),
                    "to": _("Copy link to {what}"),
                    "refused": _("Copying is blocked. The address is:"),
                    "code": _("QR code"),
                    "codeTo": _("Show a QR code for {what}"),
                    "close": _("Close"),
                    "drawing": _("Drawing the code …"),
                    "tooLong": _("This address is too long for a QR code."),
                },
            }
        ),
        on={"code": None},
        key=key,
        width="content",
    )


@lru_cache(maxsize=256)
def qr_code(text: str) -> str:
    """Return a QR code as a data URL, "" for a text that is too long.

    Dark on white, with its quiet zone. Up to some 880 characters: beyond that its cells are too
    small for a projector and a phone.
    """
    import segno  # rarely needed

    try:
        code = segno.make_qr(text, error="m")
    except segno.DataOverflowError:
        return ""
    if int(code.version) > _MAX_CELLS:
        return ""
    return str(code.svg_data_uri(dark="#000", light="#fff", border=4, omitsize=True))


_MAX_CELLS = 24  # of the 40 versions of a code: 113 cells to a side


_search = component("search", css=["search.css"])


@dataclass(frozen=True, slots=True)
class SearchEntry:
    """A search entry. also: other words that find it."""

    name: str
    about: str
    href: str
    also: str = ""


def search(entries: Sequence[SearchEntry], *, key: str) -> int | None:
    """Draw the field; return the index of the entry that was just chosen, or None."""
    result = _search(
        plain(
            {
                "entries": [asdict(entry) for entry in entries],
                "words": {
                    "label": _("Search pages and terms"),
                    "hint": _("Press / to search."),
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


_terms = component("terms", css=["terms.css"], isolate_styles=False)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a term means, and where it can be seen: the words of a link, and its address."""

    name: str
    text: str
    where: str
    href: str


def meanings(terms: Mapping[str, Meaning], *, key: str) -> str | None:
    """Explain marked terms of the page at their words; return the one to be seen, or None.

    terms: by the key that ends their links, as ``terms.marked`` makes them.
    """
    told = {name: asdict(meaning) for name, meaning in terms.items()}
    chosen = _terms(plain({"terms": told}), on={"see": None}, key=key).see
    return chosen if is_name(chosen, terms) else None


_png = component("svg_png", css=["svg_png.css"])


def svg_as_png(svg: str, *, name: str, label: str, help_text: str, key: str) -> None:
    """Draw a button that saves an SVG picture as ``name``.png, at twice its size."""
    _png({"svg": svg, "name": name, "label": label, "help": help_text}, key=key)
