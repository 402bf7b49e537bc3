"""How a component is declared, shown and heard.

A component is a script of this folder, its style sheets, and the element that the script fills.
What a browser sends is only believed after a check: anybody can send anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeGuard

import streamlit as st

from pages.components.files import bundled, joined

Listener = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Component:
    """A declared component; call it to show it. mount: Streamlit's command for that."""

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

        on: the name of a value that the browser sends -> a function that gets it, unchecked, before
        the next run; None where reading the state is enough. A session keeps these functions, so
        they must not refer to large arrays. default: the first values of the state.
        """
        callbacks = {
            f"on_{name}_change": _nothing
            if listener is None
            else partial(_hear, listener, key, name)
            for name, listener in (on or {}).items()
        }
        return self.mount(data=data, key=key, default=default, width=width, **callbacks)


def component(
    name: str, *, css: Sequence[str] = (), html: str | None = None, isolate_styles: bool = True
) -> Component:
    """Declare the component of the script ``name``.js. css: names of style sheets.

    html: what the script finds; an element whose class is the name where none is given.
    """
    return Component(
        st.components.v2.component(
            name,
            html=f'<div class="{name.replace("_", "-")}"></div>\n' if html is None else html,
            css=joined(*css) or None,
            js=bundled(f"{name}.js"),
            isolate_styles=isolate_styles,
        )
    )


def sent(key: str | None, name: str) -> Any:
    """Return the value that the browser sent last, unchecked; None where it sent none."""
    return None if key is None else (st.session_state.get(key) or {}).get(name)


def is_index(value: object, *ends: int) -> TypeGuard[list[int]]:
    """Return whether a value is a list of whole numbers, each from 0 to below its end."""
    return (
        isinstance(value, list)
        and len(value) == len(ends)
        and all(is_whole(part) and 0 <= part < end for part, end in zip(value, ends, strict=True))
    )


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_name(value: object, names: Collection[str]) -> TypeGuard[str]:
    """Return whether a value is one of some names."""
    return isinstance(value, str) and value in names


def plain(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the data of a component of the first screens: in a list.

    In a mapping Streamlit looks for tables, and imports pandas to know one; in a list it does not.
    """
    return [data]


def _hear(listener: Listener, key: str | None, name: str) -> None:
    listener(sent(key, name))


def _nothing() -> None:
    """Do nothing: Streamlit wants a callback for each value, also where the state is read."""
