"""A button that puts a link on the clipboard, and the other links behind a smaller one.

Each link is also a QR code for a class, large over the page; it is drawn when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

from pages.components import reach
from pages.components.component import component, is_index, plain, sent
from pages.i18n import _

_component = component("copy_link", css=["copy_link.css"])


@dataclass(frozen=True, slots=True)
class Link:
    """An address, what it is a link to, and what it opens in a sentence.

    is_here: it is what the browser's own address says, also after a part of the page changed that.
    """

    to: str
    opens: str
    href: str
    is_here: bool = False


def copy_link(links: Sequence[Link], *, note: str = "", key: str) -> None:
    """Show the button, which copies the first of some links; note: a sentence below all of them."""
    asked = sent(key, "code")  # which link, and what it was then
    shown = links[asked[0]] if _is_one_of(asked, len(links)) else None
    _component(
        plain(
            {
                "links": [{**asdict(link), "local": reach.note(link.href)} for link in links],
                "note": note,
                "code": None if shown is None else {"asked": asked, "src": qr_code(shown.href)},
                "words": {
                    "copy": _("Copy link"),
                    "copied": _("Copied"),
                    "to": _("Copy link to {what}"),
                    "others": _("All links"),
                    "refused": _("The browser does not let the page copy. Here is the address:"),
                    "code": _("QR code"),
                    "codeTo": _("Show a QR code of the link to {what}"),
                    "close": _("Close"),
                    "drawing": _("Drawing the code …"),
                    "tooLong": _("This address is too long for a QR code that a camera can read."),
                },
            }
        ),
        on={"code": None},
        key=key,
        width="content",
    )


@lru_cache(maxsize=256)
def qr_code(text: str) -> str:
    """Return a QR code as the address of a picture, "" for a text that is too long.

    Dark on white, with its quiet zone, and as sharp as it is large.

    Up to some 880 characters: beyond that its cells are too small for a projector and a phone.
    """
    import segno  # late: it is wanted seldom

    try:
        code = segno.make_qr(text, error="m")
    except segno.DataOverflowError:
        return ""
    if int(code.version) > _MAX_CELLS:
        return ""
    return str(code.svg_data_uri(dark="#000", light="#fff", border=4, omitsize=True))


def _is_one_of(asked: object, n: int) -> bool:
    """Say whether the browser asks for the code of a link that there is."""
    return isinstance(asked, list) and len(asked) == 2 and is_index(asked[:1], n)


_MAX_CELLS = 24  # of the 40 versions of a code: 113 cells to a side
