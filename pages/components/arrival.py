"""Nothing to see: it brings the page to its top where another one is shown than before."""

from __future__ import annotations

from pages.components.component import component

_component = component("arrival")


def arrival(place: str, *, key: str) -> None:
    """Say which place is shown; Streamlit would keep the place scrolled as the last one was."""
    _component({"place": place}, key=key)
