"""Link of attention by hand: stage, words, vectors and matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pages.i18n import N_
from pages.ui.address import parameters
from pages.ui.address.parameters import Choice, Choices, Flag, Number, Option, Parameter, Text
from tfm_core.inspect.by_hand import attention, learning

MAX_LETTERS = 100  # of the words together
_MAX_NUMBERS = 400  # characters of vectors or a matrix
RATES = (0.1, 0.3, 1.0, 2.0, 4.0)
FORMS = ("layer", "heads", "one", "einsum", "fused", "torch")  # in their order
_WIDTHS = tuple(range(attention.MIN, attention.MAX + 1))

STAGE = parameters.named(
    "stage",
    {
        "one-hot": N_("Words"),
        "projections": N_("Projections"),
        "heads": N_("Heads"),
        "forms": N_("Six ways"),
    },
    key="hand-stage",
)
WORDS = Text("words", first=" ".join(attention.FIRST_WORDS), most=MAX_LETTERS)
ONE_WIDTH = Option("numbers-one", options=_WIDTHS, first=3)
HEADS_WIDTH = Option("numbers-heads", options=_WIDTHS, first=4)
MASK = parameters.named(
    "mask", {"none": N_("None"), "causal": N_("Causal"), "padding": N_("Padding")}
)
SCALE = Flag("scale", first=True)
TURNED = Text("turned", first="", most=_MAX_NUMBERS)
VECTORS = Text("vectors", first="", most=_MAX_NUMBERS)
SEED = Number("draw", first=1, low=0, high=9999)
MATRICES = {
    name: Text(query, first="", most=_MAX_NUMBERS)
    for name, query in {"query": "wq", "key": "wk", "value": "wv", "out": "wo"}.items()
}
RATE = Option("rate", options=RATES, first=1.0)
LEARNED = Number("learned", first=0, low=0, high=learning.MAX_STEPS)
WANTED = Choices(
    "wanted",
    names=tuple(f"{q}-{k}" for q in range(1, _WIDTHS[-1] + 1) for k in range(1, _WIDTHS[-1] + 1)),
    first=("3-2",),
)
N_HEADS = {
    width: Option(f"heads-{width}", options=fitting, first=fitting[0])
    for width in _WIDTHS
    if (fitting := tuple(n for n in range(2, width + 1) if width % n == 0))
}
HEAD = Choice("head", names=tuple(map(str, _WIDTHS)), first="1", key="hand-head")
FORM = Choice("form", names=FORMS, first="heads", key="hand-form")
AT = Text("at", first="", most=20)


_Shown = tuple[Parameter[Any], ...]


def elsewhere(stage: str) -> Iterator[Parameter[Any]]:
    one: _Shown = (ONE_WIDTH, SCALE, AT)
    heads: _Shown = (HEADS_WIDTH, SEED, *MATRICES.values(), *N_HEADS.values())
    shown: dict[str, _Shown] = {
        "one-hot": one,
        "projections": (*one, SEED, *list(MATRICES.values())[:3], RATE, LEARNED, WANTED),
        "heads": (*heads, SCALE, HEAD, AT),
        "forms": (*heads, FORM),
    }
    every = {each.query: each for parameters in shown.values() for each in parameters}
    here = {each.query for each in shown[stage]}
    return (each for query, each in every.items() if query not in here)
