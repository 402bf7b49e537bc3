"""Pictures in a row to choose from, each with its name and a mark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.components.files import bundled, joined
from pages.components.packing import is_index
from tfm_core.plots.png import picture_url

_component = st.components.v2.component(
    "thumbnails",
    html='<div class="thumbnails"></div>\n',
    css=joined("thumbnails.css"),
    js=bundled("thumbnails.js"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Thumbnail:
    """A picture (C, height, width), uint8, its name, and a few letters below it."""

    picture: npt.NDArray[np.uint8]
    name: str
    below: str = ""
    is_wrong: bool = False


def thumbnails(
    pictures: Sequence[Thumbnail],
    *,
    chosen: int | None,
    label: str,
    on_pick: Callable[[int], None],
    key: str,
) -> None:
    """Show the pictures in one row; ``on_pick`` hears the place of the one that is pressed."""
    count = len(pictures)  # a session keeps what its callbacks hold

    def picked() -> None:
        value = st.session_state.get(key, {}).get("pick")
        if is_index([value], count):
            on_pick(value)

    _component(
        data={
            "pictures": [
                {
                    "url": picture_url(each.picture),
                    "name": each.name,
                    "below": each.below,
                    "wrong": each.is_wrong,
                }
                for each in pictures
            ],
            "chosen": chosen,
            "label": label,
        },
        on_pick_change=picked,
        key=key,
    )
