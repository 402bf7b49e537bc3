"""Link of the walk: model, step and block."""

from __future__ import annotations

import re

from pages.i18n import N_, _
from pages.ui.address import parameters
from pages.ui.address.parameters import Choice, Number, SavedStep, Text, Unfit, Written
from pages.ui.model import walk_steps

MINE, BOOK = "mine", "book"
SOURCE = Choice(
    "walk-source",
    first=MINE,
    names=(MINE, BOOK),
    labels={MINE: N_("A model of mine"), BOOK: N_("Textbook example")},
)
POSITION = parameters.named(
    "walk-positions", {"learned": N_("Learned"), "sinusoidal": N_("Sinusoidal")}
)


STEP = Text(walk_steps.STEP, first="", most=40)  # each model has its own steps
BLOCK = Number("block", first=0, low=0, high=98, offset=1)  # and so many blocks
WEIGHTS = SavedStep("weights", key="walk-weights")
MAX_OUT = 40


def _codes_of(text: str) -> tuple[str, ...]:
    codes = tuple(dict.fromkeys(text.split(",")))
    if len(codes) > MAX_OUT:
        raise Unfit(_("at most {n} parts", n=MAX_OUT))
    return codes


OUT: Written[tuple[str, ...]] = Written(
    "out", reader=_codes_of, writer=",".join, first=(), key="walk-out"
)
TEXT = Text("walk-text", first="", key="walk-own-text", most=400)
DRAWN = "picture-"
_DIGIT = re.compile(DRAWN + r"[\w-]{1,4096}", re.ASCII)


def _digit_of(text: str) -> str:
    if not _DIGIT.fullmatch(text):
        raise Unfit(_("picture- and a drawing"))
    return text


DIGIT = Written("walk-digit", reader=_digit_of, writer=str, first="", key="walk-own-digit")
"""``DRAWN`` and a drawing as ``own_picture.to_text`` writes it, or "" for none."""
