"""The small picture of a finding: curves, or rows of colours, that draw themselves once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pages.components.component import component
from tfm_core.plots.kinds import COLORWAY
from tfm_core.probe.types import Floats

_picture = component("moving_picture", css=["moving_picture.css"])


def curves(found: Iterable[Iterable[Floats]], **more: Any) -> dict[str, Any]:
    """Return a picture of curves, x and y (n,) each, in their usual colours.

    What was not measured is left out. more: ``levels`` that are known without any training, as
    dotted lines; ``isLoss``, where what is between them is what matters; ``isSquare`` of ways in a
    plane around 0, with an arrow to the end of each.
    """
    lines = [
        (x[np.isfinite(y)].tolist(), y[np.isfinite(y)].tolist(), colour)
        for (x, y), colour in zip(found, COLORWAY, strict=False)
    ]
    return {"lines": lines, **more}


def moving_picture(picture: dict[str, Any], *, key: str) -> None:
    """Draw a picture, which says nothing to a screen reader: the words beside it do.

    picture: one of ``curves``, or ``rows`` of colours, or ``weights`` from 0 to 1 (Q, K) with their
    ``colour``. Where motion is not wanted it stands whole at once.
    """
    _picture(picture, key=key)
