"""A digit reader at large: what the model sees of the strokes, and where each head looks.

All answers of all kept weights, and all their maps, reach the browser at once, so neither the
slider nor a press on a head asks the server.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.component import component
from pages.components.digit_reader import Drawn, Picture, Reading, board_data, reader_words
from pages.i18n import _
from tfm_core.plots.patches import INK

_component = component(
    "digit_lab",
    css=["drawing_board.css", "digit_reader.css", "digit_lab.css"],
    html='<div class="room"><div class="reader lab"></div></div>\n',
)


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """A reading and what it was read from.

    seen: uint8 (size, size), as the model sees it; how: what was done to make it so. heads: (S, L,
    H, side, side) and rollout: (S, side, side), what each map takes from each patch. sinces and
    sentences: for each class that may have been meant, the index from which on it is read for good
    (None: it is not), and that in words.
    """

    reading: Reading
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
            **self.reading.answer(number),
            "seen": base64.b64encode(self.seen.tobytes()).decode(),
            "how": self.how,
            "maps": base64.b64encode(np.round(255 * shares).astype(np.uint8).tobytes()).decode(),
            "sinces": list(self.sinces),
            "sentences": list(self.sentences),
        }


def digit_lab(
    shown: Drawn,
    look: Look | None,
    *,
    samples: Picture,
    labels: Sequence[int],
    classes: Sequence[str],
    shape: tuple[int, int, int],
    note: str,
    key: str,
) -> None:
    """Show the board with what stands on it, what was read there, and where the model looked.

    samples: (N, size, size) and labels: which class each is. shape: layers, heads and patches of
    the model. note: what is said while there is no look. ``st.session_state[key]`` gets ``kept``,
    the number of a drawing, once the pen rests.
    """
    n_layers, n_heads, n_patches = shape
    _component(
        {
            **board_data(shown, samples),
            "labels": list(labels),
            "layers": n_layers,
            "heads": n_heads,
            "patches": n_patches,
            "ink": INK,
            "reading": None if look is None else look.answer(shown.number),
            "note": note,
            "words": {
                **reader_words(classes, [classes[label] for label in labels]),
                "seen": _("What the model sees"),
                "looks": _("Where it looks"),
                "heads": _("Each head, layer · head"),
                "name": _("Layer {layer}, head {head}"),
                "strongest": _("{name}: looks most at row {row}, column {column}"),
                "head": _("{name}. Press it again for all layers at once."),
                "rollout": _("Rollout: what reaches the classifier through all layers."),
                "press": _("Press the one you meant"),
                "mean": _("I meant a {digit}"),
            },
        },
        default={"drawn": [], "kept": 0},
        on={"drawn": None, "kept": None},
        key=key,
    )
