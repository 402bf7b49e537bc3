"""One head as lines: keys (attended to) on the left, queries (attending) on the right.

A line is as thick as its weight. One token can be held under the pointer or pinned with a click;
its weights then stand beside the tokens of the other side. Arrow keys move, Enter pins.
"""

from __future__ import annotations

from collections.abc import Callable

from pages.components.component import component, is_index
from pages.components.packing import packed, query_names
from pages.i18n import _
from tfm_core.inspect.attention.map_view import MapView

Pin = tuple[str, int]  # "q" or "k", and a index from 0

_component = component(
    "head_lines", css=["packed.css", "head_lines.css"], html='<div class="lines"></div>\n'
)


def head_lines(
    view: MapView, *, ink: str, pin: Pin | None, on_pin: Callable[[Pin | None], None], key: str
) -> None:
    """Show one head's weights (Q, K) as lines.

    on_pin: hears which token is pinned, and None when it is let go. ink: the colour of the lines.
    """
    n_query, n_key = view.weights.shape  # a session keeps what its callbacks hold

    def pinned(value: object) -> None:
        known, pin = valid_pin(value, n_query, n_key)
        if known:
            on_pin(pin)

    _component(pack_lines(view, ink=ink, pin=pin), on={"pin": pinned}, key=key)


def pack_lines(view: MapView, *, ink: str, pin: Pin | None) -> bytes:
    """Return what the browser gets."""
    if pin is not None and pin[1] >= view.weights.shape[0 if pin[0] == "q" else 1]:
        pin = None  # pinned in a longer example
    header = {
        "query": list(view.query),
        "key": list(view.key),
        "rows": query_names(view.query, view.query_words),
        "titles": {"query": view.query_title, "key": view.key_title},
        "ink": ink,
        "pin": pin,
        "words": _words(),
    }
    return packed(header, view.seen())


def valid_pin(value: object, n_query: int, n_key: int) -> tuple[bool, Pin | None]:
    """Return whether the browser sent something sensible, and the pin; None lets the token go."""
    if value == []:
        return True, None
    if is_index(value, 2, max(n_query, n_key)):
        side, index = value
        if index < (n_query, n_key)[side]:
            return True, ("qk"[side], index)
    return False, None


def _words() -> dict[str, str]:
    return {
        "lines": _("Lines of one head. Arrow keys move over the tokens, Enter pins one."),
        "hint": _("Point at a token for its weights; a click pins it."),
        "most": _("Only the 1,500 strongest lines are drawn; point at a token for all of its own."),
        "query_of": _("reads"),
        "key_of": _("Who reads"),
        "nobody": _("no weight at all"),
        "key": _("key"),
        "save": _("Save as"),
    }
