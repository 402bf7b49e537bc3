"""Where each word of a caption looks in the picture while the walk writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.walk import Step
from tfm_core.inspect.walk_forward import Subject


@dataclass(frozen=True, slots=True, eq=False)
class WordMaps:
    """The words of a caption that ask, <bos> first, without padding.

    maps: (T, side, side), one head's weights over the patches. writes: the word that is to follow
    each, with an arrow. boxes: of the digit that the following word names, or None.
    """

    words: Sequence[str]
    writes: Sequence[str]
    maps: npt.NDArray[np.float32]
    boxes: Sequence[Sequence[int] | None]


def word_maps(subject: Subject, step: Step, example: int, head: int) -> WordMaps:
    """Return one head's weights of an example's true caption, from the step of cross-attention."""
    assert subject.described is not None
    following = subject.truth[example]  # <eos> last
    weights = subject.tape[f"{step.block}.cross_attention.weights"]  # (B, H, T, patches)
    n, side = len(following), round(weights.size(-1) ** 0.5)
    maps = weights[example, min(head, weights.size(1) - 1), :n].cpu().float().numpy()
    return WordMaps(
        (subject.tokens("tgt", example) or ())[:n],
        [f"→ {word}" for word in following],
        maps.reshape(n, side, side),
        [*subject.described.boxes[example], None],
    )
