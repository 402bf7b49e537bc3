"""A digit is drawn, a model answers with ten bars at each stroke, and a slider goes through its
training.

The answers of all kept weights reach the browser at once, so the slider asks nobody.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.component import component, is_whole, plain, sent
from pages.components.digit_pad import SIDE, board_words, decode
from pages.i18n import _

Picture = npt.NDArray[np.uint8]

DIGITS = tuple("0123456789")

_component = component(
    "digit_reader",
    css=["drawing_board.css", "digit_reader.css"],
    html='<div class="reader"></div>\n',
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What stands on the board: the how-manieth drawing it is, and the text the browser sent."""

    number: int
    value: str

    def picture(self, samples: Picture) -> Picture | None:
        """Return the sample, the drawing (SIDE, SIDE) or that of a link, which is as large as a
        sample; None for an empty board.
        """
        index = self.sample(len(samples))
        if index is not None:
            return np.asarray(samples[index])
        drawing = decode(self.value)
        return decode(self.value, samples.shape[-1]) if drawing is None else drawing

    def sample(self, n: int) -> int | None:
        """Return which of ``n`` samples stands on the board, None where none of them does."""
        is_sample = self.value.isdecimal() and int(self.value) < n
        return int(self.value) if is_sample else None


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What was read. steps: of the S kept weights; shares: (S, classes), their probabilities.

    since: the index from which on the class of the last weights is read; said: that in words.
    """

    steps: tuple[int, ...]
    shares: npt.NDArray[Any]
    since: int
    said: str

    def answer(self, number: int) -> dict[str, Any]:
        """Return what the browser needs to show it. number: of the drawing that was read."""
        return {
            "number": number,
            "steps": list(self.steps),
            "shares": np.round(self.shares.astype(float), 4).tolist(),
            "since": self.since,
            "said": self.said,
        }


def drawn(key: str, *, first: int) -> Drawn:
    """Return what stands on the board now; at the first visit it is the sample ``first``."""
    return valid_drawn(sent(key, "drawn")) or Drawn(0, str(first))


def valid_drawn(value: object) -> Drawn | None:
    """Return what the browser sent, or None where it is nothing that a board sends."""
    if not (isinstance(value, list) and len(value) == 2):
        return None
    number, text = value
    if not is_whole(number) or not isinstance(text, str):
        return None
    is_sample = len(text) == 1 and text in "0123456789"
    return Drawn(number, text if is_sample or decode(text) is not None else "")


def digit_reader(
    shown: Drawn, reading: Reading | None, *, samples: Picture, note: str, key: str
) -> None:
    """Show the board with what stands on it, and what was read there.

    samples: (10, 28, 28), one of each digit. note: what is said while there is no reading.
    """
    _component(
        plain(
            {
                **board_data(shown, samples),
                "reading": None if reading is None else reading.answer(shown.number),
                "note": note,
                "words": reader_words(DIGITS, DIGITS),
            }
        ),
        default={"drawn": []},
        on={"drawn": None},
        key=key,
    )


def board_data(shown: Drawn, samples: Picture) -> dict[str, Any]:
    """Return what the browser needs of a board, of what stands on it, and of its samples."""
    return {
        "side": SIDE,
        "size": samples.shape[-1],
        "samples": base64.b64encode(samples.tobytes()).decode(),
        "shown": [shown.number, shown.value],
    }


def reader_words(classes: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Return what a reader says; classes: of the bars, names: of the samples."""
    return {
        **board_words(),
        "classes": list(classes),
        "names": list(names),
        "bars": _("Probability of each digit"),
        "samples": _("Or choose a digit that the model has never seen"),
        "sample": _("Show a {digit}"),
        "slider": _("Steps of training"),
        "at": _("At step {step} it reads a {digit} ({share})"),
    }
