"""Pictures in a row to choose from, each with its name and a mark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.component import component, is_index
from tfm_core.plots.pictures import picture_url

_component = component("thumbnails", css=["thumbnails.css"])


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

    def picked(value: Any) -> None:
        if is_index([value], count):
            on_pick(value)

    _component(
        {
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
        on={"pick": picked},
        key=key,
    )
