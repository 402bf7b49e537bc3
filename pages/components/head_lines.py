"""One head as lines: keys (attended to) on the left, queries (attending) on the right.

A line is as thick as its weight. One token can be held under the pointer or pinned with a click;
its weights then stand beside the tokens of the other side. Arrow keys move, Enter pins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.component import component, is_index
from pages.components.packing import packed, query_names
from pages.i18n import _

Pin = tuple[str, int]  # "q" or "k", and a index from 0

_component = component(
    "head_lines", css=["packed.css", "head_lines.css"], html='<div class="lines"></div>\n'
)


def head_lines(
    weights: npt.NDArray[Any],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    titles: tuple[str, str],
    ink: str,
    pin: Pin | None,
    on_pin: Callable[[Pin | None], None],
    key: str,
    may_attend: npt.NDArray[np.bool_] | None = None,
    query_words: Sequence[str] = (),
) -> None:
    """Show one head's weights (Q, K) as lines.

    on_pin: hears which token is pinned, and None when it is let go.
    titles: what the query and the key tokens are. ink: the colour of the lines.
    query_words: what is said of each query, where that is more than its token.
    """
    n_query, n_key = weights.shape  # a session keeps what its callbacks hold

    def pinned(value: object) -> None:
        known, pin = valid_pin(value, n_query, n_key)
        if known:
            on_pin(pin)

    _component(
        pack_lines(
            weights,
            query_tokens,
            key_tokens,
            titles=titles,
            ink=ink,
            pin=pin,
            may_attend=may_attend,
            query_words=query_words,
        ),
        on={"pin": pinned},
        key=key,
    )


def pack_lines(
    weights: npt.NDArray[Any],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    titles: tuple[str, str],
    ink: str,
    pin: Pin | None,
    may_attend: npt.NDArray[np.bool_] | None = None,
    query_words: Sequence[str] = (),
) -> bytes:
    """Return what the browser gets. Raises ValueError when tokens do not fit the weights."""
    if weights.shape != (len(query_tokens), len(key_tokens)):
        raise ValueError(
            f"The map is {weights.shape[0]} by {weights.shape[1]}, but there are "
            f"{len(query_tokens)} query and {len(key_tokens)} key tokens."
        )
    if pin is not None and pin[1] >= weights.shape[0 if pin[0] == "q" else 1]:
        pin = None  # pinned in a longer example
    if may_attend is not None:
        weights = np.where(may_attend, weights, np.array(np.nan, weights.dtype))
    header = {
        "query": list(query_tokens),
        "key": list(key_tokens),
        "rows": query_names(query_tokens, query_words),
        "titles": {"query": titles[0], "key": titles[1]},
        "ink": ink,
        "pin": pin,
        "words": _words(),
    }
    return packed(header, weights)


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
