"""Drawing a digit: a pad, and a lab that answers each stroke and shows the attention.

The answers of all saved weights, and their maps, reach the browser at once, so neither the slider
nor a press on a head asks the server.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.component import component, is_whole, plain
from pages.i18n import _

SIDE = 112  # pixels to a side of what the browser sends, 4 for each of MNIST's

_pad = component("drawing_board", css=["drawing_board.css"])


def digit_pad(
    *, key: str, on_change: Callable[[], None] | None = None
) -> npt.NDArray[np.uint8] | None:
    """Draw the pad; return the drawing as uint8 (SIDE, SIDE), 255 is ink, or None."""
    result = _pad(
        {"side": SIDE, "words": board_words()},
        default={"pixels": ""},
        on={"pixels": None if on_change is None else lambda _pixels: on_change()},
        key=key,
        width="content",
    )
    return decode(result.pixels)


def board_words() -> dict[str, str]:
    return {
        "clear": _("Clear"),
        "undo": _("Undo"),
        "hint": _("Draw a digit here"),
        "pad": _("Drawing pad for one digit"),
    }


def decode(value: object, side: int = SIDE) -> npt.NDArray[np.uint8] | None:
    """Return the pixels (side, side) from the browser, or None if invalid or empty."""
    if not isinstance(value, str) or len(value) != 4 * -(-(side * side) // 3):
        return None
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(raw) != side * side:
        return None
    pixels = np.frombuffer(raw, np.uint8).reshape(side, side)
    return pixels if pixels.any() else None


Picture = npt.NDArray[np.uint8]

DIGITS = tuple("0123456789")

_lab = component(
    "digit_lab",
    css=["drawing_board.css", "digit_lab.css"],
    html='<div class="room"><div class="lab"></div></div>\n',
)


@dataclass(frozen=True, slots=True)
class DrawnDigit:
    """What is on the board: the number of the drawing, and the browser's text."""

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
        """Return which of ``n`` samples is on the board, or None."""
        is_sample = self.value.isdecimal() and int(self.value) < n
        return int(self.value) if is_sample else None


def valid_drawing(value: object) -> DrawnDigit | None:
    """Return the drawing that the browser sent, or None if invalid."""
    if not (isinstance(value, list) and len(value) == 2):
        return None
    number, text = value
    if not is_whole(number) or not isinstance(text, str):
        return None
    is_sample = len(text) == 1 and text in "0123456789"
    return DrawnDigit(number, text if is_sample or decode(text) is not None else "")


@dataclass(frozen=True, slots=True, eq=False)
class LabReading:
    """The model's answers, its input, and its attention, with the weights of S saved steps.

    shares: (S, classes), probabilities. since: the index from which on the class of the last
    weights is read; said: that in words. seen: uint8 (size, size), as the model sees it; how: what
    was done to make it so. heads: (S, L, H, side, side) and rollout: (S, side, side), what each map
    takes from each patch. sinces and sentences: for each class that may have been meant, the index
    from which on it is read for good (None: it is not), and that in words.
    """

    steps: tuple[int, ...]
    shares: npt.NDArray[Any]
    since: int
    said: str
    seen: Picture
    how: str
    heads: npt.NDArray[Any]
    rollout: npt.NDArray[Any]
    sinces: tuple[int | None, ...]
    sentences: tuple[str, ...]

    def answer(self, number: int) -> dict[str, Any]:
        """Return what the browser needs to show it. number: of the drawing that was read."""
        n_steps, side = len(self.heads), self.heads.shape[-1]
        heads = self.heads.reshape(n_steps, -1, side * side)
        maps = np.concatenate([heads, self.rollout.reshape(n_steps, 1, -1)], 1)
        shares = maps / np.maximum(maps.max(-1, keepdims=True), 1e-9)
        return {
            "number": number,
            "steps": list(self.steps),
            "shares": np.round(self.shares.astype(float), 4).tolist(),
            "since": self.since,
            "said": self.said,
            "seen": base64.b64encode(self.seen.tobytes()).decode(),
            "how": self.how,
            "maps": base64.b64encode(np.round(255 * shares).astype(np.uint8).tobytes()).decode(),
            "sinces": list(self.sinces),
            "sentences": list(self.sentences),
        }


def digit_lab(
    shown: DrawnDigit,
    look: LabReading | None,
    *,
    samples: Picture,
    labels: Sequence[int],
    classes: Sequence[str],
    shape: tuple[int, int, int],
    note: str,
    key: str,
) -> None:
    """Draw the board, the model's answers and its attention.

    samples: (N, size, size) and labels: which class each is. shape: layers, heads and patches of
    the model. note: shown while there is no look. ``st.session_state[key]`` gets ``kept``,
    the number of a drawing, once the pen rests.
    """
    n_layers, n_heads, n_patches = shape
    _lab(
        plain(
            {
                "side": SIDE,
                "size": samples.shape[-1],
                "samples": base64.b64encode(samples.tobytes()).decode(),
                "shown": [shown.number, shown.value],
                "labels": list(labels),
                "layers": n_layers,
                "heads": n_heads,
                "patches": n_patches,
                "reading": None if look is None else look.answer(shown.number),
                "note": note,
                "words": {
                    **board_words(),
                    "classes": list(classes),
                    "names": [classes[label] for label in labels],
                    "bars": _("Probability of each digit"),
                    "samples": _("Or choose an unseen digit"),
                    "sample": _("Show a {digit}"),
                    "slider": _("Weights of step"),
                    "at": _("Step {step}: {digit} ({share})"),
                    "seen": _("What the model sees"),
                    "looks": _("Where it looks"),
                    "heads": _("Heads (layer · head)"),
                    "name": _("Layer {layer}, head {head}"),
                    "strongest": _("{name}: looks most at row {row}, column {column}"),
                    "head": _("{name}. Press again for all layers."),
                    "rollout": _("Rollout: attention through all layers."),
                    "press": _("Choose what you meant"),
                    "mean": _("I meant a {digit}"),
                },
            }
        ),
        default={"drawn": [], "kept": 0},
        on={"drawn": None, "kept": None},
        key=key,
    )
