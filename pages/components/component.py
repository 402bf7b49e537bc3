"""How a component is declared, shown and heard, and how its data is packed.

A component is a script of this folder, its style sheets, and the element that the script fills.
Values from a browser are checked before use: anyone can send anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeGuard

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.components.files import bundled, joined
from pages.i18n import _

Listener = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Component:
    """A declared component; call it to show it."""

    mount: Callable[..., Any]

    def __call__(
        self,
        data: object = None,
        *,
        key: str | None,
        on: Mapping[str, Listener | None] | None = None,
        default: Mapping[str, object] | None = None,
        width: int | Literal["stretch", "content"] = "stretch",
    ) -> Any:
        """Show the component with ``data``, and return its state.

        on: the name of a value that the browser sends -> a callback that gets it, unchecked, before
        the next run; None if the state is enough. A session keeps the callbacks, so they must not
        refer to large arrays. default: initial state.
        """
        callbacks = {
            f"on_{name}_change": partial(self._changed, listener, key, name)
            for name, listener in (on or {}).items()
        }
        return self.mount(data=data, key=key, default=default, width=width, **callbacks)

    @staticmethod
    def _changed(listener: Listener | None, key: str | None, name: str) -> None:
        if listener is not None:
            listener(sent(key, name))


def component(
    name: str, *, css: Sequence[str] = (), html: str | None = None, isolate_styles: bool = True
) -> Component:
    """Declare the component of the script ``name``.js. css: names of style sheets.

    Each has what all share, too: a shadow root sees no style of the page.

    html: what the script finds; an element whose class is the name where none is given.
    """
    return Component(
        st.components.v2.component(
            name,
            html=f'<div class="{name.replace("_", "-")}"></div>\n' if html is None else html,
            css=joined(*(("focus.css", "shared.css", *css) if isolate_styles else css)) or None,
            js=bundled(f"{name}.js"),
            isolate_styles=isolate_styles,
        )
    )


def sent(key: str | None, name: str) -> Any:
    """Return the last value from the browser, unchecked, or None."""
    return None if key is None else (st.session_state.get(key) or {}).get(name)


def is_index(value: object, *ends: int) -> TypeGuard[list[int]]:
    """Return whether a value is a list of integers, each from 0 to below its end."""
    return (
        isinstance(value, list)
        and len(value) == len(ends)
        and all(is_whole(part) and 0 <= part < end for part, end in zip(value, ends, strict=True))
    )


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_name(value: object, names: Collection[str]) -> TypeGuard[str]:
    return isinstance(value, str) and value in names


def plain(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Wrap the data of a component of the first screens in a list.

    In a mapping Streamlit looks for tables, and imports pandas to know one; in a list it does not.
    """
    return [data]


def pack_bytes(header: Mapping[str, Any], values: npt.NDArray[Any]) -> bytes:
    """Return header length (uint32), JSON header, values: little-endian float16 or float32.

    The header gets the ``kind`` of the values; its end is padded to a multiple of four bytes.
    """
    kind = "float16" if values.dtype == np.float16 else "float32"
    text = json.dumps({**header, "kind": kind}).encode()
    text += b" " * (-len(text) % 4)
    little = "<f2" if kind == "float16" else "<f4"
    return len(text).to_bytes(4, "little") + text + values.astype(little).tobytes()


def table_words() -> dict[str, str]:
    """Return the words of the table that ``data_table.js`` makes of a figure."""
    return {
        "table": _("Data as a table"),
        "csv": _("Download CSV"),
        "close": _("Close"),
        "none": _("Nothing is drawn yet."),
        "cut": _(
            "{rows} of {all_rows} rows, {columns} of {all_columns} columns. The CSV has all.",
            rows="{rows}",
            all_rows="{all_rows}",
            columns="{columns}",
            all_columns="{all_columns}",
        ),
    }


def player_words() -> dict[str, str]:
    """Return the words of the buttons of ``player.js``."""
    return {
        "play": _("Play the training"),
        "pause": _("Pause"),
        "back": _("Previous snapshot"),
        "next": _("Next snapshot"),
        "scrub": _("Training step"),
    }


def query_names(tokens: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the label of each query of a map: its words, else number and token."""
    if words:
        return list(words)
    return [_("query {n}: {at}", n=n, at=token) for n, token in enumerate(tokens, 1)]


def pooled(
    weights: npt.NDArray[Any], most: int, *, least_side: int = 1
) -> tuple[npt.NDArray[Any], int]:
    """Return max-pooled maps (F, ..., Q, K), and the side of a pooled block in cells.

    ``weights[0]`` keeps at most ``most`` values, unless the larger side of a map would fall below
    ``least_side``.
    """
    n_values = weights[0].size
    block = int(np.ceil(np.sqrt(n_values / most))) if n_values > most else 1
    block = max(1, min(block, max(weights.shape[-2:]) // least_side))
    if block == 1:
        return weights, 1
    by_row = _largest(weights.swapaxes(-2, -1), block).swapaxes(-2, -1)
    return _largest(by_row, block), block


def _largest(values: npt.NDArray[Any], block: int) -> npt.NDArray[Any]:
    """Return the largest of each block along the last axis, of the last one of what is left."""
    largest = values[..., ::block].copy()
    for place in range(1, block):
        others = values[..., place::block]
        some = largest[..., : others.shape[-1]]
        np.fmax(some, others, out=some)
    return largest
