"""The state of Translate in its address."""

from __future__ import annotations

import re

from pages.i18n import N_, _
from pages.ui.address import parameters
from pages.ui.address.parameters import Number, Option, SavedStep, Text, Unfit, Written

MAX_TEXT = 400
MAX_STEPS = 1024
GREEDY, SAMPLE, BEAM, BESIDE = "greedy", "sample", "beam", "beside"

METHOD = parameters.named(
    "method",
    {
        GREEDY: N_("Greedy"),
        SAMPLE: N_("Sample"),
        BEAM: N_("Beam search"),
        BESIDE: N_("Compare with truth"),
    },
    key="translate-method",
)
TEXT = Text("text", first="", key="translate-text", most=MAX_TEXT)
PICTURE = Number("picture", first=1, low=1, high=50_000, key="translate-picture")
WEIGHTS = SavedStep("weights", key="translate-weights")
AT = Number("at", first=0, low=0, high=MAX_STEPS, key="translate-at")
LENGTH = Number("length", first=20, low=1, high=400, key="translate-length")
TEMPERATURE = Option(
    "temperature",
    first=1.0,
    options=tuple(round(0.1 * n, 1) for n in range(21)),
    key="translate-temperature",
)
TOP_K = Number("top-k", first=0, low=0, high=1000, key="translate-top-k")
TOP_P = Option(
    "top-p",
    first=1.0,
    options=tuple(round(0.05 * n, 2) for n in range(1, 21)),
    key="translate-top-p",
)
SEED = Number("seed", first=0, low=0, high=10**6, key="translate-seed")
WIDTH = Number("width", first=4, low=1, high=16, key="translate-width")
PENALTY = Option(
    "penalty",
    first=0.0,
    options=tuple(round(0.1 * n, 1) for n in range(21)),
    key="translate-penalty",
)

Forced = tuple[tuple[int, int], ...]
"""Forced tokens in order: position, from 0, and token id."""
Head = tuple[int, int] | None
"""A layer and a head, from 0; head -1 is the mean, None the default."""


def read_forced(text: str) -> Forced:
    """Parse ``3-17,1-9``: positions from 1 and token ids. Raises Unfit."""
    tokens: dict[int, int] = {}
    for part in filter(None, text.split(",")):
        pair = re.fullmatch(r"([0-9]{1,4})-([0-9]{1,6})", part)
        if pair is None or not 1 <= int(pair[1]) <= MAX_STEPS:
            raise Unfit(_("positions and token numbers, such as 3-17,5-9"))
        tokens[int(pair[1]) - 1] = int(pair[2])
    return tuple(tokens.items())


def write_forced(forced: Forced) -> str:
    return ",".join(f"{place + 1}-{id}" for place, id in forced)


def read_head(text: str) -> Head:
    """Parse ``2`` or ``2.3``: a layer and perhaps a head, from 1. Raises Unfit."""
    pair = re.fullmatch(r"([1-9][0-9]?)(?:\.([1-9][0-9]?))?", text)
    if pair is None:
        raise Unfit(_("a layer, or layer and head, such as 2.3"))
    return int(pair[1]) - 1, int(pair[2] or 0) - 1


def write_head(head: Head) -> str:
    if head is None:
        return ""
    layer, number = head
    return f"{layer + 1}" if number < 0 else f"{layer + 1}.{number + 1}"


FORCED: Written[Forced] = Written(
    "forced", first=(), key="translate-forced", reader=read_forced, writer=write_forced
)
HEAD: Written[Head] = Written(
    "head", first=None, key="translate-head", reader=read_head, writer=write_head
)
