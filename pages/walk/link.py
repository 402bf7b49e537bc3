"""Link of the walk: model, step and block; and numbers of older links."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pages.i18n import N_, _
from pages.ui.address import parameters, view_link
from pages.ui.address.parameters import Choice, Number, SavedStep, Text, Unfit, Written
from pages.ui.model import walk_steps
from pages.ui.settings.model_choice import SizedModelView
from pages.ui.settings.names_choice import NAMES
from tfm_core.config import ModelConfig

MINE, BOOK = "mine", "book"
SOURCE = Choice(
    "walk-source",
    first=MINE,
    names=(MINE, BOOK),
    labels={MINE: N_("A model of mine"), BOOK: N_("Textbook example")},
    renamed={"The example of the texts": BOOK},
    old=("source",),
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


@dataclass(frozen=True, slots=True)
class WalkView(SizedModelView):
    """What the page shows. step: its name, "" for the first; block: from 0, as ``Number`` says.

    position: the kind of the textbook example; a model of one's own has its own. weights: the step
    of a run whose weights are shown. text, digit: the reader's own sentence
    or drawing. out: codes of parts that are knocked out.
    """

    source: str = view_link.linked(SOURCE)
    position: str = view_link.linked(POSITION)
    step: str = view_link.linked(STEP)
    block: int = view_link.linked(BLOCK)
    weights: int = view_link.linked(WEIGHTS)
    text: str = view_link.linked(TEXT)
    digit: str = view_link.linked(DIGIT)
    out: tuple[str, ...] = view_link.linked(OUT)
    names: str = view_link.linked(NAMES)


_INTO = (
    "tokens", "heads", "masks", "embedding", "positions", "queries-keys-values", "split", "scores",
    "masking", "softmax", "weighted-sum", "merge", "add-norm", "feed-forward", "encoder-stack",
)  # fmt: skip
_BLOCK = (
    "queries-keys-values", "split", "scores", "softmax", "weighted-sum", "merge", "add-norm",
    "feed-forward", "encoder-stack",
)  # fmt: skip
_PATCHES = ("picture", "patches", "patch-projection")
_ANSWER = ("logits", "whole")

STEPS: dict[str, tuple[str, ...]] = {  # family -> steps, the first of which was number 1
    "encoder-decoder": (*_INTO, "decoder-attention", "cross-attention", *_ANSWER),
    "encoder-only": (*_INTO, "pooling", "", *_ANSWER),
    "decoder-only": (*_INTO, "", "", *_ANSWER),
    "vit": (*_PATCHES, "cls", "positions", *_BLOCK, "pooling", "head", "whole"),
    "recurrent": (
        "tokens", "embedding", "encoder", "bridge", "scores", "weights", "context", "writing",
        "whole",
    ),
    "captioner": (
        *_PATCHES, "positions", *_BLOCK, "tokens", "embedding", "word-positions", "masks",
        "decoder-attention", "cross-attention", "decoder-add-norm", "decoder-feed-forward",
        *_ANSWER,
    ),
}  # fmt: skip


def steps_of(config: ModelConfig) -> tuple[str, ...]:
    """Return the names of the steps that numbers stood for, from 1; "" where there was none."""
    return STEPS[config.family]
