"""A running text of one's own, which a language model learns to continue."""

from __future__ import annotations

import json

from tfm_core.data.own import sets
from tfm_core.data.own.tokens import Cutter
from tfm_core.sentences import StudentError

FILE = "text.txt"
TEST = "test.txt"
"""Of a set with a test file of its own: nothing of it is learned from."""


def own_text(set_id: str) -> str:
    """Return the text of a set. Raises ValueError, in a sentence, where it cannot be had."""
    own = sets.find(set_id)
    if own.kind != "text":
        raise StudentError(
            "The set “{name}” is not a plain text. Choose one that is, or paste a text.",
            name=own.name,
        )
    return own.content(FILE).decode()


def own_test(set_id: str) -> str:
    """Return the test file of a set of a text, "" where its text is split by place.

    Raises ValueError, in a sentence, where it cannot be had.
    """
    own = sets.find(set_id)
    return own.content(TEST).decode() if TEST in own.files else ""


def own_vocabulary(set_id: str) -> tuple[Cutter, tuple[str, ...]] | None:
    """Return how a set of a text is cut, and its vocabulary; None where the set does not say it.

    It is known where a run has kept it, too. Raises ValueError, in a sentence, where it cannot be
    had.
    """
    own = sets.find_vocabulary(set_id)
    if sets.TOKENS not in own.files or own.kind != "text":
        return None
    (side,) = json.loads(own.content(sets.TOKENS))
    return Cutter.from_json(side["cut"]), tuple(side["words"])
