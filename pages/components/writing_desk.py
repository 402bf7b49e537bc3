"""A text while it is written, token by token, with alternatives and attention.

All steps travel at once: only choosing another token asks the server.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.component import component, is_index, pack_bytes
from pages.i18n import _
from tfm_core.inspect.generation import Writing, in_nats
from tfm_core.plots.palette import BLUE, COLOURS, GREY, ORANGE

_component = component("writing_desk", css=["writing_desk.css"], html='<div class="desk"></div>\n')
_COLOURS = {"ink": COLOURS["cross"], "model": GREY, "drawn": COLOURS["decoder"], "forced": BLUE}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskView:
    """How a text is shown: at a step, from 1; 0 plays it, once for each new ``mark``.

    forced: the tokens that the reader put in, the last one last. own: the text without them.
    is_drawn: show the probabilities that tokens are sampled from beside the model's. glosses: of
    target tokens. language: of the words that are read, as in ``en``; None if of none.
    """

    at: int
    mark: str
    forced: Sequence[str] = ()
    own: Writing | None = None
    is_drawn: bool = False
    glosses: Mapping[str, str] = field(default_factory=dict)
    language: str | None = None


def writing_desk(
    writing: Writing,
    looked: npt.NDArray[np.float32],
    view: DeskView,
    *,
    force: Callable[[int, int], None],
    undo: Callable[[], None],
    free: Callable[[], None],
    move: Callable[[int], None],
    key: str,
) -> None:
    """Show a text while it is written. looked: (T, K), the attention of each token.

    Callbacks: force gets place and id, both from 0; undo frees the last, free all; move gets the
    step shown, from 1; 0 is the whole text.
    """
    n_steps, n_tokens = len(writing.tokens), len(writing.source.vocabulary)

    def forces(value: object) -> None:
        if is_index(value, n_steps, n_tokens):
            force(*value)

    def moves(value: Any) -> None:
        if is_index([value], n_steps + 1):
            move(value)

    _component(
        pack_desk(writing, looked, view),
        on={
            "force": forces,
            "undo": lambda is_pressed: undo() if is_pressed else None,
            "free": lambda is_pressed: free() if is_pressed else None,
            "at": moves,
        },
        key=key,
    )


def pack_desk(writing: Writing, looked: npt.NDArray[np.float32], view: DeskView) -> bytes:
    picture, own = writing.source.picture, view.own
    header: dict[str, Any] = {
        "steps": [
            {
                "id": token.own.id,
                "token": token.own.token,
                "chance": token.own.chance,
                "rank": token.rank,
                "forced": token.is_forced,
                "given": token.is_given,
                "n_left": token.n_left,
                "best": [[one.id, one.token, one.chance, one.drawn] for one in token.best],
            }
            for token in writing.tokens
        ],
        "keys": list(writing.keys),
        "n_read": writing.n_read,
        "picture": None
        if picture is None
        else {
            "pixels": base64.b64encode(picture[0].tobytes()).decode(),
            "size": picture.shape[-1],
            "side": round(len(writing.keys) ** 0.5),
        },
        "forced": list(view.forced),
        "own": None if own is None else list(own.words),
        "own_text": "" if own is None else f"{own.text or '–'} (ln p {in_nats(own.score)})",
        "is_drawn": view.is_drawn,
        "glosses": dict(view.glosses),
        "language": view.language or "",
        "at": min(view.at, len(writing.tokens)),
        "mark": view.mark,
        "colours": {**_COLOURS, "ink": ORANGE} if picture is not None else _COLOURS,
        "words": _words(is_prompt=bool(writing.source.context)),
    }
    return pack_bytes(header, looked)


def _words(*, is_prompt: bool) -> dict[str, str]:
    return {
        "steps": _("Writing steps"),
        "back": _("Previous token"),
        "next": _("Next token"),
        "play": _("Write"),
        "again": _("Again"),
        "pause": _("Pause"),
        "undo": _("Undo “{token}”"),
        "free": _("Undo all"),
        "read": _("Reads") if not is_prompt else _("Continues"),
        "written": _("Writes"),
        "own": _("Without your tokens:"),
        "chip": _("Token {n}: {token}, {share}"),
        "first": _("Token {n} of {count}: “{token}”, the likeliest, {share}."),
        "other": _("Token {n} of {count}: “{token}”, {share}, rank {rank}."),
        "was_forced": _("Token {n} of {count}: “{token}”, yours; the model gave {share}."),
        "given": _("Token {n} of {count}: “{token}”, copied."),
        "looked": _("Looks most at “{token}” ({weight})."),
        "weight": _("{token}: {weight} of the attention"),
        "picture": _("The picture; most attention is on patches {patches}"),
        "weighed": _("Token {n}: press another to write it instead"),
        "copied": _("Token {n}: copied"),
        "force": _("Write {token} as token {n} ({share})"),
        "keep": _("Keep {token} as token {n} ({share})"),
        "let_go": _("Remove your {token} at token {n} ({share})"),
        "model": _("the model’s probability"),
        "drawn": _("sampled from {n} tokens"),
    }
