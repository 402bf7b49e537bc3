"""A text in the making: written token by token, with what else was weighed and where was looked.

Every step travels at once, so that stepping and playing ask nobody; a press on another token, to
put it in the place of the written one, asks the page.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.component import component, is_index, pack_bytes
from pages.i18n import _
from tfm_core.inspect.writing.steps import Writing, in_nats
from tfm_core.plots.palette import BLUE, COLOURS, GREY, ORANGE

_component = component("writing_desk", css=["writing_desk.css"], html='<div class="desk"></div>\n')
_COLOURS = {"ink": COLOURS["cross"], "model": GREY, "drawn": COLOURS["decoder"], "forced": BLUE}


@dataclass(frozen=True, slots=True)
class DeskEvents:
    """Who hears of what: force(place, id), both from 0; undo the last; free all; the step shown.

    A step counts from 1; 0 is the whole text.
    """

    force: Callable[[int, int], None]
    undo: Callable[[], None]
    free: Callable[[], None]
    at: Callable[[int], None]


def writing_desk(
    writing: Writing,
    looked: npt.NDArray[np.float32],
    *,
    at: int,
    mark: str,
    events: DeskEvents,
    key: str,
    forced: Sequence[str] = (),
    own: Writing | None = None,
    is_drawn: bool = False,
) -> None:
    """Show a text at one of its steps, from 1; 0 plays it, once for each new ``mark``.

    looked: (T, K), where the model looked for each token. forced: the tokens that the reader put
    in, the last one last. own: the text without them. is_drawn: show beside the model's
    probabilities those that a token is drawn from.
    """
    n_steps, n_tokens = len(writing.tokens), len(writing.source.vocabulary)

    def forces(value: object) -> None:
        if is_index(value, n_steps, n_tokens):
            events.force(*value)

    def moves(value: Any) -> None:
        if is_index([value], n_steps + 1):
            events.at(value)

    _component(
        pack_desk(writing, looked, at=at, mark=mark, forced=forced, own=own, is_drawn=is_drawn),
        on={
            "force": forces,
            "undo": lambda is_pressed: events.undo() if is_pressed else None,
            "free": lambda is_pressed: events.free() if is_pressed else None,
            "at": moves,
        },
        key=key,
    )


def pack_desk(
    writing: Writing,
    looked: npt.NDArray[np.float32],
    *,
    at: int,
    mark: str,
    forced: Sequence[str],
    own: Writing | None,
    is_drawn: bool,
) -> bytes:
    """Return what the browser gets."""
    picture = writing.source.picture
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
        "forced": list(forced),
        "own": None if own is None else list(own.words),
        "own_text": "" if own is None else f"{own.text or '–'} (ln p {in_nats(own.score)})",
        "is_drawn": is_drawn,
        "at": min(at, len(writing.tokens)),
        "mark": mark,
        "colours": {**_COLOURS, "ink": ORANGE} if picture is not None else _COLOURS,
        "words": _words(is_prompt=bool(writing.source.context)),
    }
    return pack_bytes(header, looked)


def _words(*, is_prompt: bool) -> dict[str, str]:
    return {
        "steps": _("Steps of writing"),
        "back": _("One token back"),
        "next": _("One token on"),
        "play": _("Write"),
        "again": _("Again"),
        "pause": _("Pause"),
        "undo": _("Undo “{token}”"),
        "free": _("Undo all"),
        "read": _("Reads") if not is_prompt else _("Goes on from"),
        "written": _("Writes"),
        "own": _("Without your tokens it writes:"),
        "chip": _("Token {n}: {token}, {share}"),
        "first": _("Token {n} of {count}: “{token}”, the likeliest, {share}."),
        "other": _("Token {n} of {count}: “{token}”, {share}, only number {rank} in likelihood."),
        "was_forced": _(
            "Token {n} of {count}: “{token}”, put in by you; the model gave it {share}."
        ),
        "given": _("Token {n} of {count}: “{token}” stood there and is only copied."),
        "looked": _("Looks most at “{token}” ({weight})."),
        "weight": _("{token}: {weight} of the attention"),
        "picture": _(
            "The picture that is described; most of the attention is on patches {patches}"
        ),
        "weighed": _("For token {n}: a press writes that one instead"),
        "copied": _("For token {n}: copied, so nothing is chosen"),
        "force": _("Write {token} as token {n} instead; the model gives it {share}"),
        "keep": _("{token} is written as token {n}, {share}; go on"),
        "let_go": _("Let {token} go, which you put in as token {n}; the model gives it {share}"),
        "model": _("the model’s probability"),
        "drawn": _("drawn from ({n} tokens)"),
    }
